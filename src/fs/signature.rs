//! What `blkid -p -o export` prints (blkid(8)).

use std::collections::BTreeMap;

/// The marks that blkid found on a device, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature(BTreeMap<String, String>);

impl Signature {
    /// Reads `NAME=value` lines. `Err` is the first line that is none: another program called blkid, or
    /// another format of it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| pair(line).ok_or_else(|| line.to_owned())).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// What was found, for people.
    pub(super) fn describe(&self) -> Option<String> {
        let words = ["USAGE", "TYPE", "PTTYPE", "LABEL", "UUID"];
        let found: Vec<String> =
            words.iter().filter_map(|name| self.get(name).map(|value| format!("{name}={value}"))).collect();
        (self.get("TYPE").is_some() || self.get("PTTYPE").is_some()).then(|| found.join(" "))
    }
}

fn pair(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then(|| (name.to_owned(), plain(value)))
}

/// Takes back the backslashes before characters that a shell would not take as they are.
fn plain(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(next) = rest.next() {
        text.extend(if next == '\\' { rest.next() } else { Some(next) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_are_read() {
        let text = "DEVNAME=/dev/x\nLABEL=a\\ b\nTYPE=ext4\nUSAGE=filesystem\nPART_ENTRY_SIZE=5\n";
        let found = Signature::parse(text).unwrap();
        assert_eq!(found.get("LABEL"), Some("a b"));
        assert_eq!(found.describe().unwrap(), "USAGE=filesystem TYPE=ext4 LABEL=a b");
    }

    #[test]
    fn the_form_of_another_blkid_is_not_taken() {
        for text in ["/dev/x: UUID=\"1\" TYPE=\"ext4\"", "ext4", "=x", "type=ext4"] {
            assert!(Signature::parse(text).is_err(), "{text}");
        }
        assert_eq!(Signature::parse("DEVNAME=/dev/x\n").unwrap().describe(), None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(text in any::<String>()) {
            let _ = Signature::parse(&text).map(|found| found.describe());
        }
    }
}
