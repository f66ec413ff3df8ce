use std::fmt;
use std::str::FromStr;

use super::{FsType, ParseError};

/// One thing that a class may choose about how a file system is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MakeOption {
    /// ext4: an inode for each 4 KiB.
    Inode4K,
    /// ext4: an inode for each 64 KiB.
    Inode64K,
    /// ext4: an inode for each MiB.
    Inode1M,
    /// XFS: files share no blocks.
    NoReflink,
    /// XFS: an index of what each block belongs to.
    ReverseMap,
    /// btrfs: data is kept twice.
    DataTwice,
    /// btrfs: metadata is kept once.
    MetadataOnce,
    /// btrfs: XXHASH checksums.
    XxHash,
    /// btrfs: SHA-256 checksums.
    Sha256,
    /// btrfs: BLAKE2 checksums.
    Blake2,
}

impl MakeOption {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Inode4K,
        Self::Inode64K,
        Self::Inode1M,
        Self::NoReflink,
        Self::ReverseMap,
        Self::DataTwice,
        Self::MetadataOnce,
        Self::XxHash,
        Self::Sha256,
        Self::Blake2,
    ];

    /// The word for it in a class: what the program that makes the file system calls it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inode4K => "bytes-per-inode=4096",
            Self::Inode64K => "bytes-per-inode=65536",
            Self::Inode1M => "bytes-per-inode=1048576",
            Self::NoReflink => "reflink=0",
            Self::ReverseMap => "rmapbt=1",
            Self::DataTwice => "data=dup",
            Self::MetadataOnce => "metadata=single",
            Self::XxHash => "csum=xxhash",
            Self::Sha256 => "csum=sha256",
            Self::Blake2 => "csum=blake2",
        }
    }

    /// The file system that has it.
    pub const fn fs(self) -> FsType {
        match self {
            Self::Inode4K | Self::Inode64K | Self::Inode1M => FsType::Ext4,
            Self::NoReflink | Self::ReverseMap => FsType::Xfs,
            Self::DataTwice | Self::MetadataOnce | Self::XxHash | Self::Sha256 | Self::Blake2 => {
                FsType::Btrfs
            }
        }
    }

    /// What it is about: of two options about the same thing, one is too many.
    fn subject(self) -> &'static str {
        self.word().split('=').next().unwrap_or_default()
    }
}

/// What a class chooses about how its file systems are made; nothing for Quarry's own choice. It stands in
/// the LV's tags, since a file system may be made after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MakeOptions(Vec<MakeOption>);

impl MakeOptions {
    /// The options, in an order of ours.
    pub fn iter(&self) -> impl Iterator<Item = MakeOption> {
        self.0.iter().copied()
    }

    /// Whether nothing is chosen.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file system of that type can be made so.
    ///
    /// # Errors
    /// An option that it does not have.
    pub fn check(&self, fs: FsType) -> Result<(), ParseError> {
        match self.iter().find(|option| option.fs() != fs) {
            Some(option) => Err(unknown(option.word(), |option| option.fs() == fs)),
            None => Ok(()),
        }
    }
}

impl FromStr for MakeOptions {
    type Err = ParseError;

    /// `reflink=0,rmapbt=1`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut taken: Vec<MakeOption> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let option = MakeOption::ALL.into_iter().find(|option| option.word() == word);
            let option = option.ok_or_else(|| unknown(word, |_| true))?;
            if taken.iter().any(|other| other.subject() == option.subject()) {
                let why = "says what another option says already";
                return Err(ParseError::new("mkfs option", word, why));
            }
            taken.push(option);
        }
        taken.sort_unstable();
        Ok(Self(taken))
    }
}

impl fmt::Display for MakeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(MakeOption::word).collect();
        f.write_str(&words.join(","))
    }
}

fn unknown(word: &str, fits: impl Fn(MakeOption) -> bool) -> ParseError {
    let words: Vec<&str> =
        MakeOption::ALL.into_iter().filter(|option| fits(*option)).map(MakeOption::word).collect();
    ParseError::new("mkfs option", word, format!("is not one of: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_list_are_taken_and_read_back() {
        for (text, shown) in
            [("", ""), ("reflink=0", "reflink=0"), (" csum=xxhash, data=dup ", "data=dup,csum=xxhash")]
        {
            let options: MakeOptions = text.parse().unwrap();
            assert_eq!(options.to_string(), shown);
            assert_eq!(shown.parse::<MakeOptions>().unwrap(), options);
        }
        for bad in ["-f", "reflink", "reflink=0 -f", "csum=xxhash,csum=sha256", "data=dup,data=dup", "\0"] {
            assert!(bad.parse::<MakeOptions>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_option_of_another_file_system_is_refused_with_those_that_fit() {
        let options: MakeOptions = "reflink=0".parse().unwrap();
        options.check(FsType::Xfs).unwrap();
        let error = options.check(FsType::Ext4).unwrap_err().to_string();
        assert!(error.contains("bytes-per-inode=4096") && !error.contains("rmapbt"), "{error}");
    }
}
