//! What a pod writes to its volume so that it is on the disk, and what a later one has to find there.

use crate::Error;
use crate::scenarios::volumes::{Mode, ensure};

/// The bytes of a block of a raw volume, in which there is one mark.
const BLOCK: u64 = 4096;

/// The last line of what a pod says of its volume: what does not end so is not all that it had to say.
const END: &str = "end\n";

/// A stamp, at a place of its own: a file of that name, or a block of a raw volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    place: u64,
    stamp: String,
}

impl Mark {
    /// A mark in the last block of a volume of that size, and so in what it has grown by.
    pub(super) fn at_the_end_of(size: u64, stamp: u64) -> Mark {
        Mark { place: (size / BLOCK).saturating_sub(1), stamp: format!("{stamp:016x}") }
    }

    /// The shell's lines that write it. They succeed when it is on the disk.
    pub(super) fn to_write(&self, mode: Mode) -> String {
        let Mark { place, stamp } = self;
        let to = match mode {
            Mode::Filesystem => format!("of=/data/{place} conv=fsync"),
            Mode::Block => format!("of=/dev/volume bs={BLOCK} seek={place} conv=notrunc,fsync"),
        };
        format!("printf %s {stamp} | dd {to} 2>/dev/null")
    }
}

/// The shell's lines that say how large a volume is, and what is at the marks' places. [`holds`] judges what they say.
pub(super) fn to_look(mode: Mode, marks: &[Mark]) -> String {
    let places: Vec<_> = marks.iter().map(|mark| mark.place.to_string()).collect();
    let (size, read, rest) = match mode {
        Mode::Filesystem => (
            "set -- $(stat -f -c '%S %b' /data); echo $(($1 * $2))".to_owned(),
            "cat /data/$place 2>&1".to_owned(),
            String::new(),
        ),
        Mode::Block => (
            "blockdev --getsize64 /dev/volume".to_owned(),
            format!("dd if=/dev/volume bs={BLOCK} skip=$place count=1 2>/dev/null | head -c 16"),
            // What nobody has written is zero: no byte of another volume is to be seen.
            r"echo written $(tr -d '\0' < /dev/volume | wc -c)".to_owned(),
        ),
    };
    format!(
        "{size}\nfor place in {}; do echo $place $({read}); done\n{rest}\necho {}",
        places.join(" "),
        END.trim()
    )
}

/// Whether a pod has said all that it was asked by [`to_look`].
pub(super) fn is_complete(said: &str) -> bool {
    said.ends_with(END)
}

/// Fails unless that is what is to be said of a volume of this size with these marks.
pub(super) fn holds(mode: Mode, size: u64, marks: &[Mark], said: &str) -> Result<(), Error> {
    let mut lines = said.trim_end_matches(END).lines();
    let shown = lines.next().unwrap_or_default();
    let fits = |shown: u64| match mode {
        // A small file system keeps up to a quarter for itself.
        Mode::Filesystem => shown > size / 4 * 3 && shown <= size,
        Mode::Block => shown == size,
    };
    ensure(shown.parse().is_ok_and(fits), || {
        format!("it shows {shown:?} bytes, where it was answered that it has {size}")
    })?;
    let found: Vec<_> = lines.collect();
    let mut wanted: Vec<_> = marks.iter().map(|Mark { place, stamp }| format!("{place} {stamp}")).collect();
    if mode == Mode::Block {
        wanted.push(format!("written {}", marks.iter().map(|mark| mark.stamp.len()).sum::<usize>()));
    }
    ensure(found == wanted, || format!("it holds {found:?}, and what was written is {wanted:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 16 << 20;

    fn marks() -> [Mark; 2] {
        [Mark::at_the_end_of(SIZE / 2, 7), Mark::at_the_end_of(SIZE, 8)]
    }

    #[test]
    fn what_was_written_is_found_and_what_is_missing_is_told() {
        let of =
            |second: &str| format!("{}\n2047 0000000000000007\n4095 {second}\nwritten 32\nend\n", 16_777_216);
        let judge = |said: &str| holds(Mode::Block, SIZE, &marks(), said).map_err(|error| error.to_string());
        assert_eq!(judge(&of("0000000000000008")), Ok(()));
        assert!(judge(&of("")).unwrap_err().starts_with("it holds [\"2047 0000000000000007\", \"4095 \""));
        assert!(is_complete(&of("")) && !is_complete("16777216\n2047 0000000000000007\n"));
    }

    #[test]
    fn a_size_below_what_was_answered_is_told() {
        let judge = |mode, shown: u64| holds(mode, SIZE, &[], &format!("{shown}\nend\n")).is_ok();
        assert!(judge(Mode::Filesystem, SIZE / 5 * 4) && !judge(Mode::Filesystem, SIZE / 2));
        let said = |shown: u64| format!("{shown}\nwritten 0\nend\n");
        assert!(holds(Mode::Block, SIZE, &[], &said(SIZE)).is_ok());
        assert!(holds(Mode::Block, SIZE, &[], &said(SIZE / 2)).is_err());
    }

    #[test]
    fn a_shell_finds_what_it_has_written() {
        let folder = std::env::temp_dir().join(format!("marks-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let here = |script: String| script.replace("/data", &folder.display().to_string());
        let shell = |script: String| {
            let output =
                std::process::Command::new("/bin/sh").args(["-euc", &here(script)]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let [first, second] = marks();
        shell(first.to_write(Mode::Filesystem));
        let said = shell(to_look(Mode::Filesystem, &[first.clone(), second]));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(is_complete(&said), "{said}");
        assert_eq!(said.lines().nth(1), Some("2047 0000000000000007"));
        assert!(said.contains("4095 ") && said.contains("No such file"), "{said}");
        assert_eq!(first.stamp, "0000000000000007");
    }
}
