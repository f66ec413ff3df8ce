use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::ParseError;

/// The longest path that the kernel takes, in bytes: `PATH_MAX` less the closing zero (path_resolution(7)).
const LONGEST: usize = 4095;

/// Where the kubelet wants a volume: a staging path, a target path or a volume path.
///
/// It is absolute, is not `/`, and has neither `.` nor `..` in it, so that it is under what it seems to
/// be under. Doubled and trailing slashes are taken away. Control characters are none of the kubelet's, and
/// would come to stand in messages and in the mount table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TargetPath {
    parent: PathBuf,
    name: String,
}

impl TargetPath {
    /// The whole path.
    pub fn to_path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder that it lies in.
    pub fn parent(&self) -> &Path {
        &self.parent
    }

    /// Its last component.
    pub fn name(&self) -> &OsStr {
        OsStr::new(&self.name)
    }
}

impl FromStr for TargetPath {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| Err(ParseError::new("target path", text, why));
        if text.len() > LONGEST {
            return bad("is longer than 4095 bytes");
        }
        if text.contains(|c: char| c.is_control()) {
            return bad("must not contain a control character");
        }
        let Some(rest) = text.strip_prefix('/') else { return bad("must be absolute") };
        let mut parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return bad("must not contain . or .. as a component");
        }
        let Some(name) = parts.pop() else { return bad("must not be the root") };
        let parent = Path::new("/").join(parts.join("/"));
        Ok(Self { parent, name: name.to_owned() })
    }
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_path().display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> Result<PathBuf, ParseError> {
        text.parse::<TargetPath>().map(|target| target.to_path())
    }

    #[test]
    fn slashes_are_tidied() {
        assert_eq!(path("//var//lib/x/").unwrap(), Path::new("/var/lib/x"));
        assert_eq!("/x".parse::<TargetPath>().unwrap().parent(), Path::new("/"));
    }

    #[test]
    fn what_may_lead_elsewhere_is_refused() {
        for bad in ["", "/", "//", "x", "./x", "/a/../b", "/a/.", "/..", "/a\0b", "/a\nb", "/a\u{7f}"] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
        assert!(path(&format!("/{}", "x".repeat(LONGEST))).is_err());
        assert!(path(&format!("/{}", "x".repeat(LONGEST - 1))).is_ok());
        assert!(path("/a/..b/.c").is_ok());
    }

    proptest! {
        #[test]
        fn what_passes_is_already_tidy(text in "[/.ab\n ]{0,12}") {
            if let Ok(found) = path(&text) {
                let again = found.to_str().unwrap();
                prop_assert_eq!(path(again).unwrap(), found.clone());
                prop_assert!(found.is_absolute() && found.file_name().is_some());
            }
        }
    }
}
