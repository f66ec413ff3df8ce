use clap::Args;

use super::{default, needed, object_name};
use crate::config::flags::with_default;
use crate::config::{ConfigError, setting};
use crate::types::VgUuid;

/// The flags of `quarry lost`.
#[derive(Debug, Clone, Default, Args)]
pub struct LostFlags {
    /// Declares the volume group of that UUID lost.
    #[arg(long, value_name = "UUID")]
    declare: Option<String>,

    /// Takes that back.
    #[arg(long, value_name = "UUID", conflicts_with = "declare")]
    withdraw: Option<String>,

    /// The namespace that the driver is installed in.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    namespace: Option<String>,

    #[arg(long, value_name = "NAME", env = "QUARRY_LOST_CONFIG_MAP", help = with_default("The ConfigMap with the volume groups that are declared lost.", default::LOST_CONFIG_MAP))]
    lost_config_map: Option<String>,
}

/// What `quarry lost` is to do, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostConfig {
    /// The change; `None` where it is only to tell.
    pub change: Option<LostChange>,
    /// The namespace that the driver is installed in.
    pub namespace: String,
    /// The ConfigMap.
    pub config_map: String,
}

/// A change of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostChange {
    /// A group goes on it.
    Declare(VgUuid),
    /// A group comes off it.
    Withdraw(VgUuid),
}

impl LostConfig {
    /// What the flags mean.
    ///
    /// # Errors
    /// See [`ConfigError`]; all of them are the user's to mend.
    pub fn load(flags: LostFlags) -> Result<Self, ConfigError> {
        let declare = flags.declare.map(|uuid| setting("declare", uuid.parse())).transpose()?;
        let withdraw = flags.withdraw.map(|uuid| setting("withdraw", uuid.parse())).transpose()?;
        let map = flags.lost_config_map.unwrap_or_else(|| default::LOST_CONFIG_MAP.to_owned());
        Ok(Self {
            change: declare.map(LostChange::Declare).or(withdraw.map(LostChange::Withdraw)),
            namespace: setting("namespace", object_name(needed("namespace", flags.namespace)?))?,
            config_map: setting("lost-config-map", object_name(map))?,
        })
    }
}
