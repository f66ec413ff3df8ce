//! A claim for one pod: the next pod waits until the first has gone.

use super::SIZE;
use crate::scenarios::requests::{Claim, delete_claim, reads, waits_because, writes};
use crate::scenarios::volumes::{LIMIT, Mode, delete_pod, pod};
use crate::{Error, Space};

const NAME: &str = "alone";

pub(super) async fn one_pod_at_a_time(space: &Space) -> Result<(), Error> {
    space.apply(&Claim::new(NAME, SIZE, Mode::Filesystem).for_one_pod().manifest()).await?;
    space.apply(&pod("holder", NAME, Mode::Filesystem, "")).await?;
    space.pod_ready("holder", LIMIT).await?;
    writes(space, "holder").await?;
    space.apply(&pod("heir", NAME, Mode::Filesystem, "")).await?;
    waits_because(space, "heir", "ReadWriteOncePod").await?;
    reads(space, "holder").await?;
    delete_pod(&space.api(), "holder").await?;
    space.pod_ready("heir", LIMIT).await?;
    reads(space, "heir").await?;
    delete_pod(&space.api(), "heir").await?;
    delete_claim(space, NAME).await
}
