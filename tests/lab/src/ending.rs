//! How a guest ended: one word in a file of the job's folder.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::job;

/// The ways in which a guest can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The job ended with this exit status; 128 and a signal's number when a signal ended it.
    Exited(i32),
    /// The power was cut, as the job or the runner had asked.
    PowerCut,
    /// The time limit ran out, and the guest's kernel was well.
    TimedOut,
    /// The time limit ran out, and the guest's kernel did not answer.
    Hung,
    /// The guest was gone before its job had ended.
    Died,
}

impl Ending {
    pub(crate) fn save(self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(job::ENDING);
        fs::write(&path, self.to_word()).map_err(Error::at("write", &path))
    }

    pub(crate) fn load(folder: &Path) -> Result<Ending, Error> {
        let path = folder.join(job::ENDING);
        let word = fs::read_to_string(&path).map_err(Error::at("read how the guest ended from", &path))?;
        Ending::from_word(&word).ok_or_else(|| Error::Invalid(format!("a guest cannot end as {word:?}")))
    }

    fn to_word(self) -> String {
        match self {
            Ending::Exited(status) => status.to_string(),
            Ending::PowerCut => "power-cut".to_owned(),
            Ending::TimedOut => "timed-out".to_owned(),
            Ending::Hung => "hung".to_owned(),
            Ending::Died => "died".to_owned(),
        }
    }

    fn from_word(word: &str) -> Option<Ending> {
        match word {
            "power-cut" => Some(Ending::PowerCut),
            "timed-out" => Some(Ending::TimedOut),
            "hung" => Some(Ending::Hung),
            "died" => Some(Ending::Died),
            number => number.parse().ok().map(Ending::Exited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_word() {
        for ending in
            [Ending::Exited(0), Ending::Exited(137), Ending::PowerCut, Ending::TimedOut, Ending::Died]
        {
            assert_eq!(Ending::from_word(&ending.to_word()), Some(ending));
        }
        assert_eq!(Ending::from_word("hm"), None);
    }
}
