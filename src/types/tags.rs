use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::access::BLOCK;
use super::{ClusterId, CsiName, Extents, FsType, LvUuid, MakeOptions, VolumeMode, VolumeState};

/// The version of the tags that this release writes. Readers refuse a higher one.
pub const SCHEMA_VERSION: u32 = 1;

/// The beginning of every tag of ours: short, since tags live in the group's metadata area.
const PREFIX: &str = "q.";

const VERSION: &str = "v";
const STATE: &str = "s";
const NAME: &str = "n";
const MODE: &str = "m";
const CLAIM_NAMESPACE: &str = "cs";
const CLAIM_NAME: &str = "cn";
const CLUSTER: &str = "k";
const MAKE_OPTIONS: &str = "o";
const GROWTH_TARGET: &str = "t";
const GROWTH_EXTENTS: &str = "e";

/// The claim that a volume was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The claim's namespace.
    pub namespace: String,
    /// The claim's name.
    pub name: String,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What is known of a volume, and stands in its LV's tags and nowhere else.
///
/// What follows from something else is left out: the PV's name is the CSI name, and the claim's UID
/// is in it. A layout tag is absent for the linear layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeTags {
    /// What it has been through.
    pub state: VolumeState,
    /// The name that it was asked for by.
    pub name: CsiName,
    /// How it is shown to its user.
    pub mode: VolumeMode,
    /// The claim that it was made for, if the caller told.
    pub claim: Option<Claim>,
    /// The cluster that it was made for, if the caller told.
    pub cluster: Option<ClusterId>,
    /// What its class chose about how its file system is made.
    pub make: MakeOptions,
}

/// What is known of a hidden volume whose extents another one is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowthTags {
    /// The volume that is to get the extents.
    pub target: LvUuid,
    /// How many extents that volume is to have then, in all.
    pub extents: Extents,
}

/// Whose a logical volume is, by its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A volume of ours.
    Volume(VolumeTags),
    /// A hidden helper of ours.
    Growth(GrowthTags),
    /// Somebody else's: never listed, changed or removed.
    Foreign,
}

/// Tags that begin like ours and make no sense: such a volume is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// A newer release of Quarry made it.
    #[error(
        "its tags have version {0}, which a newer release of Quarry wrote: this one reads up to version {SCHEMA_VERSION}"
    )]
    Newer(u32),
    /// A tag is absent.
    #[error("its tag {PREFIX}{0} is missing")]
    Missing(&'static str),
    /// A tag has a value that it cannot have.
    #[error("its tag {PREFIX}{0} has the value {1:?}, which makes no sense")]
    Bad(&'static str, String),
}

impl VolumeTags {
    /// The tags, ready for LVM.
    pub fn encode(&self) -> Vec<String> {
        let mode = self.mode.word();
        let mut tags = vec![version(), state(self.state), tag(NAME, self.name.as_str()), tag(MODE, mode)];
        if let Some(claim) = &self.claim {
            tags.push(tag(CLAIM_NAMESPACE, &claim.namespace));
            tags.push(tag(CLAIM_NAME, &claim.name));
        }
        tags.extend(self.cluster.as_ref().map(|cluster| tag(CLUSTER, cluster.as_str())));
        tags.extend((!self.make.is_empty()).then(|| tag(MAKE_OPTIONS, &self.make.to_string())));
        tags
    }
}

impl GrowthTags {
    /// The tags, ready for LVM.
    pub fn encode(&self) -> Vec<String> {
        vec![
            version(),
            state(VolumeState::Growing),
            tag(GROWTH_TARGET, self.target.as_str()),
            tag(GROWTH_EXTENTS, &self.extents.to_string()),
        ]
    }
}

/// The tag to take away and the tag to add, for a change of state.
pub fn state_change(from: VolumeState, to: VolumeState) -> (String, String) {
    (state(from), state(to))
}

impl Owner {
    /// Reads an LV's tags. Those of other programs are passed over.
    ///
    /// # Errors
    /// Tags of ours that cannot be understood.
    pub fn parse<'a>(tags: impl IntoIterator<Item = &'a str>) -> Result<Self, TagError> {
        let ours = Ours::collect(tags);
        if ours.0.is_empty() {
            return Ok(Self::Foreign);
        }
        let version = ours.get(VERSION)?;
        match version.parse() {
            Ok(1..=SCHEMA_VERSION) => {}
            Ok(newer) => return Err(TagError::Newer(newer)),
            Err(_) => return Err(TagError::Bad(VERSION, version)),
        }
        let letter = ours.get(STATE)?;
        match VolumeState::from_letter(&letter) {
            None => Err(TagError::Bad(STATE, letter)),
            Some(VolumeState::Growing) => ours.growth().map(Self::Growth),
            Some(state) => ours.volume(state).map(Self::Volume),
        }
    }
}

/// Our tags by name, values decoded.
struct Ours(BTreeMap<String, String>);

impl Ours {
    fn collect<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        let ours = tags.into_iter().filter_map(|tag| tag.strip_prefix(PREFIX)?.split_once('='));
        Self(ours.map(|(name, value)| (name.to_owned(), decode(value))).collect())
    }

    fn get(&self, name: &'static str) -> Result<String, TagError> {
        self.0.get(name).cloned().ok_or(TagError::Missing(name))
    }

    fn parsed<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, TagError> {
        let value = self.get(name)?;
        value.parse().map_err(|_| TagError::Bad(name, value))
    }

    fn volume(&self, state: VolumeState) -> Result<VolumeTags, TagError> {
        let mode = self.get(MODE)?;
        let mode = match mode.as_str() {
            BLOCK => VolumeMode::Block,
            "" => return Err(TagError::Bad(MODE, mode)),
            _ => VolumeMode::Filesystem(mode.parse::<FsType>().map_err(|_| TagError::Bad(MODE, mode))?),
        };
        let claim = self.get(CLAIM_NAMESPACE).ok().zip(self.get(CLAIM_NAME).ok());
        let claim = claim.map(|(namespace, name)| Claim { namespace, name });
        let cluster = self
            .get(CLUSTER)
            .ok()
            .map(|cluster| cluster.parse().map_err(|_| TagError::Bad(CLUSTER, cluster)));
        let (cluster, make) = (cluster.transpose()?, self.make_options(mode)?);
        Ok(VolumeTags { state, name: self.parsed(NAME)?, mode, claim, cluster, make })
    }

    fn make_options(&self, mode: VolumeMode) -> Result<MakeOptions, TagError> {
        let Some(text) = self.0.get(MAKE_OPTIONS) else { return Ok(MakeOptions::default()) };
        let fits = |options: &MakeOptions| match mode {
            VolumeMode::Filesystem(fs) => options.check(fs).is_ok(),
            VolumeMode::Block => options.is_empty(),
        };
        let options = text.parse().ok().filter(fits);
        options.ok_or_else(|| TagError::Bad(MAKE_OPTIONS, text.clone()))
    }

    fn growth(&self) -> Result<GrowthTags, TagError> {
        let extents = Extents::new(self.parsed(GROWTH_EXTENTS)?);
        Ok(GrowthTags { target: self.parsed(GROWTH_TARGET)?, extents })
    }
}

fn version() -> String {
    tag(VERSION, &SCHEMA_VERSION.to_string())
}

fn state(state: VolumeState) -> String {
    tag(STATE, state.letter())
}

fn tag(name: &str, value: &str) -> String {
    format!("{PREFIX}{name}={}", encode(value))
}

/// What stands for itself in a value. Other bytes become `!` and two hexadecimal digits, so that a
/// tag holds only what LVM lets a tag hold (lvm(8), "VALID NAMES").
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn encode(value: &str) -> String {
    let byte = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("!{byte:02x}") };
    value.bytes().map(byte).collect()
}

/// Undoes [`encode`]; what no encoder wrote is kept as it stands, for the error that names it.
fn decode(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'!').then(|| tail.first_chunk::<2>().and_then(hex)).flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digits: &[u8; 2]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(tags: &[String]) -> Result<Owner, TagError> {
        Owner::parse(tags.iter().map(String::as_str))
    }

    fn example(name: &str) -> VolumeTags {
        VolumeTags {
            state: VolumeState::Blank,
            name: name.parse().unwrap(),
            mode: VolumeMode::Filesystem(FsType::Ext4),
            claim: Some(Claim { namespace: "prod".into(), name: "db-0".into() }),
            cluster: Some("3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f11".parse().unwrap()),
            make: MakeOptions::default(),
        }
    }

    #[test]
    fn how_a_file_system_is_made_is_remembered_and_must_fit_it() {
        let mut tags = example("a");
        tags.make = "bytes-per-inode=65536".parse().unwrap();
        let encoded = tags.encode();
        assert_eq!(encoded.last().unwrap(), "q.o=bytes-per-inode!3d65536");
        assert_eq!(parse(&encoded), Ok(Owner::Volume(tags)));
        let other = encoded.iter().map(|tag| tag.replace("q.m=ext4", "q.m=xfs")).collect::<Vec<_>>();
        assert!(matches!(parse(&other), Err(TagError::Bad("o", _))));
    }

    proptest! {
        #[test]
        fn tags_read_back_and_hold_only_what_lvm_allows(name in "\\PC{1,32}") {
            let tags = example(&name);
            let encoded = tags.encode();
            prop_assert!(encoded.iter().all(|t| t.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-!=".contains(&b))));
            prop_assert_eq!(parse(&encoded), Ok(Owner::Volume(tags)));
        }

        #[test]
        fn no_tags_make_the_reader_panic(tags in proptest::collection::vec("q\\.[a-z]{1,2}=\\PC*|\\PC*", 0..8)) {
            let _ = parse(&tags);
        }
    }

    #[test]
    fn tags_of_the_first_release_never_change() {
        let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
        assert_eq!(
            example(name).encode(),
            [
                "q.v=1",
                "q.s=b",
                &format!("q.n={name}"),
                "q.m=ext4",
                "q.cs=prod",
                "q.cn=db-0",
                "q.k=3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f11"
            ]
        );
    }

    #[test]
    fn a_change_of_state_never_makes_the_metadata_grow() {
        let lengths: Vec<_> = VolumeState::ALL.iter().map(|s| state(*s).len()).collect();
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn other_peoples_tags_are_theirs_and_broken_ones_of_ours_are_errors() {
        assert_eq!(parse(&["backup".into(), "q=x".into()]), Ok(Owner::Foreign));
        assert_eq!(parse(&["q.v=9".into(), "q.s=b".into()]), Err(TagError::Newer(9)));
        assert_eq!(parse(&["q.s=b".into()]), Err(TagError::Missing("v")));
        assert!(matches!(parse(&["q.v=1".into(), "q.s=?".into()]), Err(TagError::Bad("s", _))));
    }

    #[test]
    fn a_hidden_volume_names_its_target() {
        let growth = GrowthTags {
            target: "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4".parse().unwrap(),
            extents: Extents::new(150),
        };
        assert_eq!(parse(&growth.encode()), Ok(Owner::Growth(growth)));
    }
}
