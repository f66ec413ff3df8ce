use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::flags::with_default;
use super::{ConfigError, GroupSettings, Settings, default, directory, selections, with_file};
use crate::lvm::Selection;

/// Where the configuration of the driver is looked for that may run here.
const USUAL_FILE: &str = "/etc/quarry/quarry.toml";

/// The flags of the commands that only look.
#[derive(Debug, Clone, Default, Args)]
pub struct LookFlags {
    /// A volume group to look at, as the driver is told it; may be given several times. Others are shown if
    /// they hold volumes. [default: those in the file; without one, all]
    #[arg(
        long = "volume-group",
        value_name = "NAME[=RESERVE]",
        env = "QUARRY_VOLUME_GROUPS",
        value_delimiter = ','
    )]
    volume_groups: Option<Vec<String>>,

    /// The driver's configuration file. [default: /etc/quarry/quarry.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "QUARRY_CONFIG")]
    config: Option<PathBuf>,

    #[arg(long, value_name = "DIR", env = "QUARRY_RUN_DIRECTORY", help = with_default("The driver's directory for what need not outlive a reboot.", default::RUN_DIRECTORY))]
    run_directory: Option<PathBuf>,

    /// Prints JSON, for programs.
    #[arg(long)]
    json: bool,
}

/// The flags of `quarry volumes`.
#[derive(Debug, Clone, Default, Args)]
pub struct VolumesFlags {
    #[command(flatten)]
    look: LookFlags,

    /// Prints PersistentVolumes and claims instead, from what the volumes' tags tell, for `kubectl apply` to a
    /// cluster that was built anew.
    #[arg(long, requires = "storage_class", conflicts_with = "json")]
    manifests: bool,

    /// The StorageClass that they are to have.
    #[arg(long, value_name = "NAME", requires = "manifests")]
    storage_class: Option<String>,

    /// What is to become of a volume when its claim is deleted. [default: retain]
    #[arg(long, value_name = "POLICY", requires = "manifests")]
    reclaim_policy: Option<Policy>,
}

/// A reclaim policy, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Policy {
    /// It stays.
    #[default]
    #[value(alias = "Retain")]
    Retain,
    /// It is deleted.
    #[value(alias = "Delete")]
    Delete,
}

/// What to look at, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookConfig {
    /// The groups that the driver uses here; `None` where nothing says.
    pub volume_groups: Option<Vec<Selection>>,
    /// For what need not outlive a reboot.
    pub run_directory: PathBuf,
    /// Where LVM's own locks are.
    pub lvm_locking_directory: PathBuf,
    /// Whether to print JSON.
    pub json: bool,
}

/// The manifests to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestsConfig {
    /// The StorageClass.
    pub storage_class: String,
    /// The reclaim policy.
    pub reclaim_policy: Policy,
}

impl LookConfig {
    /// Puts the flags and the driver's file together. Blocks: it is for the start.
    ///
    /// # Errors
    /// See [`ConfigError`]; all of them are the user's to mend.
    pub fn load(flags: LookFlags) -> Result<Self, ConfigError> {
        let groups = |names: Vec<String>| names.iter().map(|name| GroupSettings::from_flag(name)).collect();
        let typed = Settings {
            volume_groups: flags.volume_groups.map(groups),
            run_directory: flags.run_directory,
            ..Settings::default()
        };
        let usual = || Path::new(USUAL_FILE).exists().then(|| PathBuf::from(USUAL_FILE));
        let settings = with_file(flags.config.or_else(usual), typed)?;
        Ok(Self {
            volume_groups: settings.volume_groups.map(selections).transpose()?,
            run_directory: directory("run-directory", settings.run_directory, default::RUN_DIRECTORY)?,
            lvm_locking_directory: directory(
                "lvm-locking-directory",
                settings.lvm_locking_directory,
                default::LVM_LOCKING_DIRECTORY,
            )?,
            json: flags.json,
        })
    }
}

impl VolumesFlags {
    /// The manifests that are asked for, if any, and where to look.
    pub fn split(self) -> (Option<ManifestsConfig>, LookFlags) {
        let reclaim_policy = self.reclaim_policy.unwrap_or_default();
        let manifests = self.storage_class.filter(|_| self.manifests);
        (manifests.map(|storage_class| ManifestsConfig { storage_class, reclaim_policy }), self.look)
    }
}
