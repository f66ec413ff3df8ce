use std::fmt;

use super::fields;
use crate::lvm::{Command, EngineError};
use crate::types::{LvName, VgName};

/// The most words that a command may have. LVM's shell answers a line of 64 words with nothing at all
/// (tried on 2.03.16; 62 were fine).
const MOST_WORDS: usize = 60;

/// A command as LVM reads it: words that its shell and a process take alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Takes words that LVM's shell reads as they are meant.
    ///
    /// The shell drops bytes above 0x7f without a word, hangs on control characters, cuts the line at a
    /// word that begins with `#`, and knows quotes and backslashes; none of that is ever needed.
    ///
    /// # Errors
    /// [`EngineError::Unspeakable`] names what is wrong.
    pub(super) fn new(words: Vec<String>) -> Result<Self, EngineError> {
        let unspeakable = |why: String| Err(EngineError::Unspeakable(why));
        if words.is_empty() || words.len() > MOST_WORDS {
            return unspeakable(format!("it has {} words, and may have 1 to {MOST_WORDS}", words.len()));
        }
        match words.iter().find_map(|word| fault(word).map(|fault| (word, fault))) {
            Some((word, fault)) => unspeakable(format!("its word {word:?} {fault}")),
            None => Ok(Self(words)),
        }
    }

    /// The name of the command, such as `lvcreate`.
    pub(super) fn name(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The words, for a process.
    pub(super) fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// The line, for the shell; its end included.
    pub(super) fn line(&self) -> String {
        format!("{self}\n")
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

fn fault(word: &str) -> Option<&'static str> {
    if word.is_empty() {
        Some("is empty")
    } else if word.starts_with('#') {
        Some("begins with '#'")
    } else if !word.bytes().all(|byte| byte.is_ascii_graphic()) {
        Some("holds a byte that is no printable ASCII")
    } else if word.contains(['"', '\'', '\\']) {
        Some("holds a quote or a backslash")
    } else {
        None
    }
}

/// Writes a command for LVM.
///
/// Options and their values are one word each. Reports take no lock: they show which LVs are active
/// all the same, and do not wait for a change that holds the group's lock.
///
/// # Errors
/// [`EngineError::Unspeakable`]: LVM's shell could not read it.
pub(super) fn encode(vg: &VgName, command: &Command) -> Result<Words, EngineError> {
    let full = |lv: &LvName| format!("{vg}/{lv}");
    let words = match command {
        Command::Group => report("vgs", &[&fields::VG, &fields::DISK], vg.to_string()),
        Command::Volumes => report("lvs", &[&fields::LV], vg.to_string()),
        Command::Volume(lv) => report("lvs", &[&fields::LV, &fields::VG], full(lv)),
        Command::Segments(lv) => {
            let mut words = report("lvs", &[&fields::SEGMENT], full(lv));
            words.insert(1, "--segments".to_owned());
            words
        }
        Command::Create { name, extents, tags } => {
            let mut words = vec![format!("--extents={extents}"), format!("--name={name}")];
            words.extend(tags.iter().map(|tag| format!("--addtag={tag}")));
            words.push(vg.to_string());
            change(&["lvcreate", "--type=linear", "--activate=y", "--zero=n", "--wipesignatures=n"], words)
        }
        Command::Extend { name, to, from } => {
            let mut words = vec![format!("--extents={to}"), full(name)];
            words.extend(from.iter().map(ToString::to_string));
            change(&["lvextend"], words)
        }
        Command::Retag { name, remove, add } => {
            let words = vec![format!("--deltag={remove}"), format!("--addtag={add}"), full(name)];
            change(&["lvchange"], words)
        }
        Command::Activate(name) => change(&["lvchange", "--activate=y"], vec![full(name)]),
        Command::Refresh(name) => change(&["lvchange", "--refresh"], vec![full(name)]),
        Command::Remove(name) => change(&["lvremove"], vec![full(name)]),
    };
    Words::new(words)
}

fn report(command: &str, fields: &[&[&str]], what: String) -> Vec<String> {
    let options = format!("--options={}", fields.concat().join(","));
    vec![command.to_owned(), "--nolocking".to_owned(), options, what]
}

/// Prompts that come all the same are answered yes: what is asked for here has been decided.
fn change(head: &[&str], tail: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
    words.insert(1, "--yes".to_owned());
    words.extend(tail);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Extents, PeRange};
    use proptest::prelude::*;

    fn lv() -> LvName {
        "pvc-1".parse().unwrap()
    }

    fn line(command: &Command) -> String {
        encode(&"vg0".parse().unwrap(), command).unwrap().to_string()
    }

    fn create(tags: Vec<String>) -> Result<Words, EngineError> {
        let command = Command::Create { name: lv(), extents: Extents::new(3), tags };
        encode(&"vg0".parse().unwrap(), &command)
    }

    #[test]
    fn changes_name_one_volume_and_options_are_one_word_each() {
        let ranges = vec![PeRange { device: "/dev/sdb".to_owned(), first: 10, last: 11 }];
        let create = Command::Create { name: lv(), extents: Extents::new(3), tags: vec!["a=b".to_owned()] };
        let extend = Command::Extend { name: lv(), to: Extents::new(5), from: ranges };
        let retag = Command::Retag { name: lv(), remove: "x".to_owned(), add: "y".to_owned() };
        for (command, expected) in [
            (
                create,
                "lvcreate --yes --type=linear --activate=y --zero=n --wipesignatures=n --extents=3 --name=pvc-1 --addtag=a=b vg0",
            ),
            (extend, "lvextend --yes --extents=5 vg0/pvc-1 /dev/sdb:10-11"),
            (retag, "lvchange --yes --deltag=x --addtag=y vg0/pvc-1"),
            (Command::Activate(lv()), "lvchange --yes --activate=y vg0/pvc-1"),
            (Command::Refresh(lv()), "lvchange --yes --refresh vg0/pvc-1"),
            (Command::Remove(lv()), "lvremove --yes vg0/pvc-1"),
        ] {
            assert!(command.is_change());
            assert_eq!(line(&command), expected);
        }
    }

    #[test]
    fn reports_take_no_lock_and_name_the_group() {
        for command in [Command::Group, Command::Volumes, Command::Volume(lv()), Command::Segments(lv())] {
            let line = line(&command);
            assert!(line.contains(" --nolocking ") && line.contains(" vg0"), "{line}");
        }
    }

    /// `--devices` and a selection crash the shell, and a PV report spoils its view of the machine.
    #[test]
    fn what_harms_a_shell_is_never_said() {
        let lines = [
            line(&Command::Group),
            line(&Command::Volumes),
            line(&Command::Volume(lv())),
            line(&Command::Segments(lv())),
            line(&Command::Create { name: lv(), extents: Extents::new(1), tags: vec![] }),
            line(&Command::Extend { name: lv(), to: Extents::new(1), from: vec![] }),
            line(&Command::Retag { name: lv(), remove: "x".to_owned(), add: "y".to_owned() }),
            line(&Command::Activate(lv())),
            line(&Command::Refresh(lv())),
            line(&Command::Remove(lv())),
        ];
        for line in lines {
            let harmful =
                |word: &str| ["--devices", "-S", "--select"].iter().any(|bad| word.starts_with(bad));
            assert!(!line.split(' ').any(harmful) && !line.starts_with("pv"), "{line}");
        }
    }

    #[test]
    fn what_the_shell_could_not_read_is_refused() {
        for tag in ["a b", "ü", "a\u{7f}", "a\tb", "a\nb", "\u{3}", "a\"b", "it's", "a\\b", "a\0"] {
            assert!(matches!(create(vec![tag.to_owned()]), Err(EngineError::Unspeakable(_))), "{tag:?}");
        }
        for word in ["", "#a"] {
            let words = vec!["lvs".to_owned(), word.to_owned()];
            assert!(matches!(Words::new(words), Err(EngineError::Unspeakable(_))), "{word:?}");
        }
    }

    #[test]
    fn sixty_words_pass_and_more_are_refused() {
        let tags = |count: usize| (0..count).map(|n| format!("t{n}")).collect();
        assert_eq!(create(tags(51)).unwrap().as_slice().len(), MOST_WORDS);
        assert!(matches!(create(tags(52)), Err(EngineError::Unspeakable(_))));
    }

    proptest! {
        #[test]
        fn every_line_is_read_back_as_the_same_words(tags in proptest::collection::vec("[!-~]{1,20}", 0..70)) {
            if let Ok(words) = create(tags) {
                let line = words.line();
                let body = line.strip_suffix('\n').unwrap();
                prop_assert!(body.split(' ').eq(words.as_slice().iter().map(String::as_str)));
                prop_assert!(body.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            }
        }
    }
}
