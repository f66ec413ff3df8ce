use super::{Claim, FsType, MakeOptions, ParseError, VgName};

/// One parameter of a StorageClass.
#[derive(Debug)]
pub struct Parameter {
    /// Its key.
    pub key: &'static str,
    /// What it does, for people.
    pub help: &'static str,
}

/// Every parameter that a StorageClass may have. An unknown key is refused: a typing error must not
/// become a volume that is not what was meant.
pub const PARAMETERS: [Parameter; 3] = [
    Parameter {
        key: VOLUME_GROUP,
        help: "the volume group that volumes are cut from; without it the one with the most room among those that answer",
    },
    Parameter { key: FS_TYPE, help: "the file system of mounted volumes: ext4 (the default), xfs or btrfs" },
    Parameter {
        key: MKFS_OPTIONS,
        help: "how file systems are made, with commas between: bytes-per-inode=65536 for ext4, or the like",
    },
];

const VOLUME_GROUP: &str = "volumeGroup";
const FS_TYPE: &str = "csi.storage.k8s.io/fstype";
const MKFS_OPTIONS: &str = "mkfsOptions";

/// Keys that csi-provisioner adds by `--extra-create-metadata`, or for its own use.
const METADATA_PREFIX: &str = "csi.storage.k8s.io/";
const PVC_NAME: &str = "csi.storage.k8s.io/pvc/name";
const PVC_NAMESPACE: &str = "csi.storage.k8s.io/pvc/namespace";

/// The parameters of a class, parsed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassParameters {
    /// The group to cut volumes from.
    pub volume_group: Option<VgName>,
    /// The file system. In CreateVolume it comes with the capability instead.
    pub fs: Option<FsType>,
    /// How file systems are made. A raw block volume has none to be made so.
    pub make: MakeOptions,
    /// The claim that a volume is for, where the provisioner tells.
    pub claim: Option<Claim>,
}

impl ClassParameters {
    /// The group that a class names, if it does, whatever else it says: a newer driver may know parameters that
    /// this one does not.
    ///
    /// # Errors
    /// What it names can be no group.
    pub fn volume_group<'a>(
        map: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Option<VgName>, ParseError> {
        let named = map.into_iter().find(|(key, _)| *key == VOLUME_GROUP);
        named.map(|(_, name)| name.parse()).transpose()
    }

    /// Takes CSI's map of parameters.
    ///
    /// # Errors
    /// An unknown key, or a value that makes no sense for its key.
    pub fn parse<'a>(map: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ParseError> {
        let mut taken = Self::default();
        let (mut name, mut namespace) = (None, None);
        for (key, value) in map {
            match key {
                VOLUME_GROUP => taken.volume_group = Some(value.parse()?),
                FS_TYPE => taken.fs = Some(value.parse()?),
                MKFS_OPTIONS => taken.make = value.parse()?,
                PVC_NAME => name = Some(object_name(value)?),
                PVC_NAMESPACE => namespace = Some(object_name(value)?),
                _ if key.starts_with(METADATA_PREFIX) => {}
                _ => return Err(unknown(key)),
            }
        }
        taken.claim = name.zip(namespace).map(|(name, namespace)| Claim { namespace, name });
        Ok(taken)
    }
}

/// A name as Kubernetes gives its objects: a DNS subdomain of at most 253 characters.
fn object_name(text: &str) -> Result<String, ParseError> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    if text.is_empty() || text.len() > 253 || !text.bytes().all(letter) {
        return Err(ParseError::new("name of a claim", text, "is no name that Kubernetes allows"));
    }
    Ok(text.to_owned())
}

fn unknown(key: &str) -> ParseError {
    let known = PARAMETERS.map(|parameter| parameter.key).join(", ");
    ParseError::new("parameter", key, format!("is not known; a StorageClass may have: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_read_and_others_refused() {
        let read =
            ClassParameters::parse([("volumeGroup", "vg0"), (PVC_NAME, "db"), (PVC_NAMESPACE, "prod")])
                .unwrap();
        assert_eq!(read.volume_group, Some("vg0".parse().unwrap()));
        assert_eq!(read.claim.unwrap().name, "db");
        for (key, value) in
            [("volumegroup", "vg0"), ("volumeGroup", "-x"), ("", ""), (FS_TYPE, "ntfs"), (MKFS_OPTIONS, "-f")]
        {
            assert!(ClassParameters::parse([(key, value)]).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn the_group_is_read_whatever_else_there_is() {
        let group = ClassParameters::volume_group;
        assert_eq!(group([("invented", "x"), ("volumeGroup", "vg0")]), Ok(Some("vg0".parse().unwrap())));
        assert_eq!(group([("volumegroup", "vg0"), (FS_TYPE, "ntfs")]), Ok(None));
        assert!(group([("volumeGroup", "-x"), ("invented", "x")]).is_err());
    }
}
