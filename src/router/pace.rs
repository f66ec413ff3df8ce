use std::time::Duration;

/// The controller's times. The defaults are right everywhere but in tests.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How long a node may be away, or a controller may be new, before what is not there counts as gone: a
    /// node that restarts its driver is back long before.
    pub away: Duration,
    /// How long a node must be linked and not show a group before it loses the group's label although no
    /// other node shows it.
    pub forgotten: Duration,
    /// How often labels and this replica's record are seen to when nothing changes. Records count for three
    /// times as long, so not more than that.
    pub round: Duration,
    /// How long changes are gathered before that.
    pub gather: Duration,
    /// How often orphans are looked for.
    pub orphans: Duration,
    /// How old a volume is at least that counts as one: a create may be repeated for as long.
    pub orphan_age: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            away: Duration::from_secs(60),
            forgotten: Duration::from_secs(3600),
            round: Duration::from_secs(10),
            gather: Duration::from_millis(500),
            orphans: Duration::from_secs(1800),
            orphan_age: Duration::from_secs(3600),
        }
    }
}
