use std::ffi::OsStr;
use std::path::Path;

use super::error::last_words;
use super::signature::Signature;
use super::{FsError, surface};
use crate::exec::{Invocation, Output, Program, Runner};
use crate::types::{FsType, FsUuid};

/// What a device holds, as far as its marks tell. It never says that a device may be formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The device can be read, blkid knows nothing on it, and its first and last MiB are zero.
    Empty,
    /// The device can be read, blkid knows nothing on it, and there are bytes at its ends: remains of a
    /// former user, or a file system that has lost its superblock.
    Unrecognised,
    /// A file system that Quarry makes.
    FileSystem {
        /// Which.
        fs_type: FsType,
        /// Its UUID.
        uuid: FsUuid,
    },
    /// Something else that is known: a file system, swap, a partition table, a part of a RAID; in words.
    Other(String),
    /// Marks of several things at once.
    Ambivalent,
}

/// Looks what a device holds. Partition tables count.
///
/// # Errors
/// The device cannot be read, wholly or in part; blkid answers in a way that is not known of it.
pub async fn probe(runner: &dyn Runner, device: &Path) -> Result<Content, FsError> {
    let arguments = ["-p", "-o", "export"].map(OsStr::new).into_iter().chain([device.as_os_str()]);
    let invocation = Invocation::query(Program::Blkid, arguments);
    let command = invocation.to_string();
    let output = runner.run(invocation).await?;
    match decode(command, &output)? {
        Some(content) => Ok(content),
        None if surface::is_zero(device).await? => Ok(Content::Empty),
        None => Ok(Content::Unrecognised),
    }
}

/// What blkid's answer means (blkid(8), "EXIT STATUS"); `None` if it found nothing, or could not read.
fn decode(command: String, output: &Output) -> Result<Option<Content>, FsError> {
    const FOUND: i32 = 0;
    const NOTHING: i32 = 2;
    const AMBIVALENT: i32 = 8;
    match output.code {
        Some(FOUND) => found(command, output).map(Some),
        Some(NOTHING) if output.stdout.is_empty() => Ok(None),
        Some(AMBIVALENT) => Ok(Some(Content::Ambivalent)),
        _ => Err(FsError::unexpected_code(command, output)),
    }
}

fn found(command: String, output: &Output) -> Result<Content, FsError> {
    let unexpected =
        |what: String| FsError::Unexpected { command: command.clone(), what, found: last_words(output) };
    let signature =
        Signature::parse(&output.text()).map_err(|line| unexpected(format!("the line {line:?}")))?;
    let Some(words) = signature.describe() else {
        return Err(unexpected("success without a type".to_owned()));
    };
    let ours = signature.get("TYPE").and_then(|name| FsType::ALL.into_iter().find(|fs| fs.name() == name));
    let uuid = signature.get("UUID").and_then(|uuid| uuid.parse().ok());
    match (ours, uuid) {
        (Some(fs_type), Some(uuid)) if signature.get("PTTYPE").is_none() => {
            Ok(Content::FileSystem { fs_type, uuid })
        }
        _ => Ok(Content::Other(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111";

    fn decoded(code: Option<i32>, stdout: &str) -> Result<Option<Content>, FsError> {
        let output = Output { code, stdout: stdout.as_bytes().to_vec(), stderr: String::new() };
        decode("blkid".to_owned(), &output)
    }

    #[test]
    fn a_file_system_of_ours_is_told_from_others() {
        let text_of = |fs: FsType| format!("DEVNAME=/dev/x\nUUID={UUID}\nTYPE={fs}\nUSAGE=filesystem\n");
        for fs_type in FsType::ALL {
            let ours = Content::FileSystem { fs_type, uuid: UUID.parse().unwrap() };
            assert_eq!(decoded(Some(0), &text_of(fs_type)).unwrap(), Some(ours));
        }
        let text = text_of(FsType::Ext4);
        for other in [
            format!("{text}PTTYPE=dos\n"),
            format!("UUID={UUID}\nTYPE=f2fs\nUSAGE=filesystem\n"),
            "TYPE=ext4\nUSAGE=filesystem\n".to_owned(),
            "PTUUID=aa\nPTTYPE=gpt\n".to_owned(),
            "TYPE=swap\nUSAGE=other\nUUID=x\n".to_owned(),
        ] {
            assert!(matches!(decoded(Some(0), &other).unwrap(), Some(Content::Other(_))), "{other}");
        }
    }

    #[test]
    fn nothing_found_and_several_found_are_told_apart() {
        assert_eq!(decoded(Some(2), "").unwrap(), None);
        assert_eq!(decoded(Some(8), "").unwrap(), Some(Content::Ambivalent));
    }

    #[test]
    fn an_answer_that_is_not_known_is_an_error() {
        for (code, text) in [
            (Some(0), ""),
            (Some(0), "ext4\n"),
            (Some(0), "/dev/x: TYPE=\"ext4\"\n"),
            (Some(2), "TYPE=ext4\n"),
            (Some(1), ""),
            (Some(4), ""),
            (None, ""),
        ] {
            assert!(decoded(code, text).is_err(), "{code:?} {text}");
        }
    }
}
