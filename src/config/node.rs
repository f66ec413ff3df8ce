use std::path::PathBuf;

use clap::Args;

use super::flags::with_default;
use super::{Config, ConfigError, Flags, Settings, default, directory, hostname, setting};
use crate::link::Controllers;
use crate::types::TargetPath;

/// The settings of a node as flags: those of a driver on its own, and what links it to its controllers.
#[derive(Debug, Clone, Default, Args)]
pub struct NodeFlags {
    #[command(flatten)]
    driver: Flags,

    /// Where the controllers are: NAME:PORT, of which every address is dialled and which is looked up
    /// again every 30 s, or ADDRESS:PORT with a comma between several.
    #[arg(long, value_name = "NAME:PORT", env = "QUARRY_CONTROLLER", help_heading = "Node")]
    controller: Option<String>,

    #[arg(long, value_name = "DIR", env = "QUARRY_CA_DIRECTORY", help_heading = "Node", help = with_default("Where ca.crt is, with the CA certificates of the controllers. It need not be there yet, and may change.", default::CA_DIRECTORY))]
    ca_directory: Option<PathBuf>,

    #[arg(long, value_name = "FILE", env = "QUARRY_TOKEN_FILE", help_heading = "Node", help = with_default("The service account token that tells the controllers which node this is. It may change.", default::TOKEN_FILE))]
    token_file: Option<PathBuf>,

    #[arg(long, value_name = "DIR", env = "QUARRY_KUBELET_DIRECTORY", help_heading = "Node", help = with_default("The kubelet's directory: mounts below it must be seen by the host.", default::KUBELET_DIRECTORY))]
    kubelet_directory: Option<PathBuf>,
}

impl NodeFlags {
    pub(super) fn into_settings(self) -> (Option<PathBuf>, Settings) {
        let (file, settings) = self.driver.into_settings();
        let settings = Settings {
            controller: self.controller,
            ca_directory: self.ca_directory,
            token_file: self.token_file,
            kubelet_directory: self.kubelet_directory,
            ..settings
        };
        (file, settings)
    }
}

/// What a node is to do, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// What a driver on its own would do too.
    pub driver: Config,
    /// Where its controllers are.
    pub controllers: Controllers,
    /// The directory with the CA's certificates.
    pub ca_directory: PathBuf,
    /// The file with the token that tells which node this is.
    pub token_file: PathBuf,
    /// The kubelet's directory.
    pub kubelet_directory: TargetPath,
}

impl NodeConfig {
    /// Reads the file that the flags name, and puts both together. Blocks: it is for the start.
    ///
    /// # Errors
    /// See [`ConfigError`]; all of them are the user's to mend.
    pub fn load(flags: NodeFlags) -> Result<Self, ConfigError> {
        let (path, typed) = flags.into_settings();
        Self::resolve(super::with_file(path, typed)?, &hostname())
    }

    /// What the settings mean; `hostname` is the node's name where none is set.
    ///
    /// # Errors
    /// A value that its setting cannot have, no volume group, or no controller.
    pub fn resolve(mut settings: Settings, hostname: &str) -> Result<Self, ConfigError> {
        // The kubelet wants to know, and not on the machine's own address only.
        settings.health_address.get_or_insert_with(|| default::NODE_HEALTH_ADDRESS.to_owned());
        let controllers = settings.controller.take().ok_or(ConfigError::NoController)?;
        let kubelet =
            directory("kubelet-directory", settings.kubelet_directory.take(), default::KUBELET_DIRECTORY)?;
        Ok(Self {
            controllers: setting("controller", controllers.parse())?,
            ca_directory: directory("ca-directory", settings.ca_directory.take(), default::CA_DIRECTORY)?,
            token_file: directory("token-file", settings.token_file.take(), default::TOKEN_FILE)?,
            kubelet_directory: setting("kubelet-directory", kubelet.to_string_lossy().parse())?,
            driver: Config::resolve(settings, hostname)?,
        })
    }
}
