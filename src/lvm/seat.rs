use std::sync::Arc;

use super::group::Group;
use super::{Command, Engine, EngineError, Fingerprint, GroupError, LvRow, Reply, Sighting, View};

/// What only the holder of a group's turn has: the engine, and the view with the fingerprint under
/// which it holds.
pub(super) struct Seat {
    engine: Option<(Arc<dyn Engine>, Sighting)>,
    view: Option<(Fingerprint, Arc<View>)>,
    /// Something happened after which the machine must be looked at before anything is believed.
    suspect: bool,
    /// A commit may lie in a disk's cache only. So it is at the start: whoever was here before may have
    /// been killed between a commit and its flush.
    pub(super) unflushed: bool,
}

impl Default for Seat {
    fn default() -> Self {
        Self { engine: None, view: None, suspect: false, unflushed: true }
    }
}

/// How often a view is read again because somebody changed the group in the meantime.
const ATTEMPTS: usize = 5;

impl Seat {
    /// The view, read anew where anything changed since it was read.
    pub(super) async fn refresh(&mut self, group: &Arc<Group>) -> Result<Arc<View>, GroupError> {
        let mut sighting = group.serving()?;
        let known = self.engine.as_ref().is_some_and(|(_, opened)| same_disks(opened, &sighting));
        if known
            && !self.suspect
            && let Some(view) = self.still_true(group, &sighting).await
        {
            return Ok(view);
        }
        if self.view.is_some() || self.suspect {
            group.look().await?;
            sighting = group.serving()?;
        }
        self.load(group, sighting).await
    }

    /// The view, if the disks' headers are those under which it was read.
    pub(super) async fn still_true(&self, group: &Group, sighting: &Sighting) -> Option<Arc<View>> {
        let (held, view) = self.view.as_ref()?;
        let now = group.backend.fingerprint(&sighting.devices).await.ok()?;
        (now == *held).then(|| Arc::clone(view))
    }

    /// Reads the whole group. What is read counts only if no commit came in between.
    async fn load(&mut self, group: &Arc<Group>, sighting: Sighting) -> Result<Arc<View>, GroupError> {
        self.view = None;
        if self.engine.as_ref().is_none_or(|(_, opened)| !same_disks(opened, &sighting)) {
            let engine = group.backend.open(&sighting.vg.name, &sighting.devices);
            self.engine = Some((engine, sighting.clone()));
        }
        let failed = |source| GroupError::Engine { vg: sighting.vg.name.clone(), source };
        for _ in 0..ATTEMPTS {
            let before = group.backend.fingerprint(&sighting.devices).await.map_err(failed)?;
            let view = self.read(group, &sighting).await?;
            let after = group.backend.fingerprint(&sighting.devices).await.map_err(failed)?;
            if before == after {
                self.suspect = false;
                return Ok(self.hold(group, after, view));
            }
        }
        Err(failed(EngineError::Unreadable {
            command: Command::Volumes.to_string(),
            reason: "the group is being changed all the time".to_owned(),
        }))
    }

    async fn read(&mut self, group: &Group, sighting: &Sighting) -> Result<View, GroupError> {
        let Reply { vgs, unallocatable, .. } = self.report(group, &Command::Group).await?;
        let lvs = self.report(group, &Command::Volumes).await?.lvs;
        let vg = vgs.into_iter().find(|vg| vg.uuid == *group.uuid());
        let vg = vg.ok_or_else(|| GroupError::Refused {
            vg: sighting.vg.name.clone(),
            what: "report the group".to_owned(),
            messages: vec!["it is not in the report: was it renamed or removed just now?".to_owned()],
        });
        if vg.is_err() {
            self.suspect = true;
        }
        Ok(View::new(vg?, unallocatable, lvs))
    }

    /// A report that must succeed: an empty list after a failure must never mean that nothing is there.
    async fn report(&mut self, group: &Group, command: &Command) -> Result<Reply, GroupError> {
        let vg = group.sighting()?.vg.name;
        let reply = self.run(group, command).await;
        let reply = reply.map_err(|source| GroupError::Engine { vg: vg.clone(), source })?;
        if reply.success {
            return Ok(reply);
        }
        self.suspect = true;
        Err(GroupError::Refused { vg, what: command.to_string(), messages: reply.messages })
    }

    /// Runs one command on the group's engine.
    pub(super) async fn run(&mut self, group: &Group, command: &Command) -> Result<Reply, EngineError> {
        let Some((engine, sighting)) = &self.engine else {
            return Err(EngineError::Unspeakable("the group has never been read".to_owned()));
        };
        let reply = group.watch(&command.to_string(), engine.run(&sighting.vg.name, command)).await;
        if reply.as_ref().map_or(true, |reply| !reply.success) {
            self.suspect = true;
        }
        reply
    }

    /// Lets go of the engine, and of what only the engine can keep true.
    pub(super) fn rest(&mut self) {
        (self.engine, self.view) = (None, None);
    }

    /// The view that holds, which is there once it has been read.
    pub(super) fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref().map(|(_, view)| view)
    }

    /// Takes one LV's fresh row into the view, if the group has seen `commits` commits since and no
    /// others; otherwise everything is read again.
    pub(super) async fn amend(
        &mut self,
        group: &Arc<Group>,
        name: &str,
        commits: u64,
        report: &Command,
    ) -> Result<Arc<View>, GroupError> {
        if !self.suspect
            && let Some(view) = self.amended(group, name, commits, report).await?
        {
            return Ok(view);
        }
        let sighting = if self.suspect { group.look().await? } else { group.sighting()? };
        self.load(group, sighting).await
    }

    /// `None` where the report shows more than our own change.
    async fn amended(
        &mut self,
        group: &Arc<Group>,
        name: &str,
        commits: u64,
        report: &Command,
    ) -> Result<Option<Arc<View>>, GroupError> {
        let Some((_, mut view)) = self.view.take() else { return Ok(None) };
        let sighting = group.sighting()?;
        let failed = |source| GroupError::Engine { vg: sighting.vg.name.clone(), source };
        let fingerprint = group.backend.fingerprint(&sighting.devices).await.map_err(failed)?;
        let reply = self.report(group, report).await?;
        let row: Option<LvRow> = reply.lvs.into_iter().find(|lv| lv.name == name);
        // A report of one LV tells nothing of them, nor can it be needed: what is created or grown lies on other disks.
        let unallocatable = (!reply.vgs.is_empty()).then_some(reply.unallocatable);
        let vg = reply.vgs.into_iter().next().or_else(|| row.as_ref().and_then(|row| row.vg.clone()));
        let Some(vg) = vg.filter(|vg| vg.uuid == view.vg.uuid && vg.seqno == view.vg.seqno + commits) else {
            return Ok(None);
        };
        let own = Arc::make_mut(&mut view);
        match row {
            Some(row) => drop(own.lvs.insert(name.to_owned(), row)),
            None => drop(own.lvs.remove(name)),
        }
        if vg.lv_count != visible(own) {
            return Ok(None);
        }
        own.vg = vg;
        if let Some(unallocatable) = unallocatable {
            own.unallocatable = unallocatable;
        }
        Ok(Some(self.hold(group, fingerprint, Arc::unwrap_or_clone(view))))
    }

    fn hold(&mut self, group: &Group, fingerprint: Fingerprint, view: View) -> Arc<View> {
        let view = Arc::new(view);
        group.publish(&view);
        self.view = Some((fingerprint, Arc::clone(&view)));
        view
    }
}

fn visible(view: &View) -> u64 {
    u64::try_from(view.lvs.len()).unwrap_or(u64::MAX)
}

/// Whether two sightings are of the same disks under the same name, so that an engine for one serves the
/// other.
pub(super) fn same_disks(opened: &Sighting, now: &Sighting) -> bool {
    opened.devices == now.devices && opened.vg.name == now.vg.name
}
