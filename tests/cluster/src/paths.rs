//! Where the cluster's files are: all in one folder of cargo's target folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// The folder of the Go module that pins everything that the cluster runs.
pub(crate) const GO_MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");

/// The cluster's folder and what is in it.
#[derive(Debug, Clone)]
pub struct Paths {
    program: PathBuf,
    target: PathBuf,
}

impl Paths {
    /// Finds them by the place of the running program, which cargo has put two levels below the target folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the running program cannot be found.
    pub fn find() -> Result<Paths, Error> {
        let program = std::env::current_exe().map_err(Error::io("find this program"))?;
        let target = program
            .ancestors()
            .nth(2)
            .ok_or_else(|| Error::other("this program is not in a target folder"))?
            .to_owned();
        Ok(Paths { program, target })
    }

    /// Those in a target folder of a test's own.
    #[cfg(test)]
    pub(crate) fn of(target: PathBuf) -> Paths {
        Paths { program: PathBuf::new(), target }
    }

    /// This program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The table of results, for other programs.
    pub fn results(&self) -> PathBuf {
        self.target.join("cluster.json")
    }

    /// How many specs of Kubernetes' own suite have passed, for other programs.
    pub(crate) fn e2e_results(&self) -> PathBuf {
        self.target.join("e2e.json")
    }

    /// What came of each of those specs.
    pub(crate) fn e2e(&self) -> PathBuf {
        self.target.join("e2e")
    }

    /// What those said that failed, and the driver meanwhile.
    pub(crate) fn e2e_logs(&self) -> PathBuf {
        self.e2e().join("logs")
    }

    /// The folder of all the rest.
    pub fn home(&self) -> PathBuf {
        self.target.join("cluster")
    }

    /// The programs, built.
    pub fn bin(&self) -> PathBuf {
        self.home().join("bin")
    }

    /// Images and the disk that holds them.
    pub fn images(&self) -> PathBuf {
        self.home().join("images")
    }

    /// What a running cluster needs; gone when it is down.
    pub fn run(&self) -> PathBuf {
        self.home().join("run")
    }

    /// What the last cluster has written; kept until the next one starts.
    pub fn logs(&self) -> PathBuf {
        self.home().join("logs")
    }

    /// For kubectl and its like, inside the cluster's network.
    pub fn kubeconfig(&self) -> PathBuf {
        self.run().join("admin.kubeconfig")
    }

    /// A script that runs kubectl in the cluster's network.
    pub fn kubectl(&self) -> PathBuf {
        self.home().join("kubectl")
    }
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::at("make", path))
}

/// Removes a file or a folder with all that is in it; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::at("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(path, content).map_err(Error::at("write", path))
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::at("read", path))
}
