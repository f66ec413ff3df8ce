//! The private configuration: whatever stands in the host's lvm.conf, LVM does the same for us.

use std::path::PathBuf;

use super::filter::accept;
use super::links::Links;
use crate::lvm::EngineError;

/// Which devices LVM may see.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// All that are there.
    Everything,
    /// These and no others, by links to them.
    Only(&'a [PathBuf], &'a Links),
}

/// What the configuration takes over from the host.
#[derive(Debug, Clone)]
pub(super) struct Host {
    /// Where LVM's locks lie: the same place for all that runs on this machine.
    pub(super) locking_dir: PathBuf,
    /// The name by which LVM knows this machine.
    pub(super) system_id: Option<String>,
}

/// Settings that never differ (lvm.conf(5); `lvmconfig --type default --withcomments`).
///
/// * `use_aio` costs 30 ms at each command's end, and can be switched off in the file only.
/// * Without udev's list and hints LVM sees what is there, and depends on no daemon of another container.
/// * `silent` answers prompts with no; a prompt would wait with the group's lock held.
/// * An open device is left to whoever asked for its removal at once, and not after 5 s with the group's lock
///   held (`retry_deactivation`).
/// * Backups are written apart from commands; no daemon is started from our container.
const FIXED: &str = r#"config {
	checks=0
}
devices {
	dir="/dev"
	obtain_device_list_from_udev=0
	external_device_info_source="none"
	use_devicesfile=0
	hints="none"
	scan_lvs=0
}
activation {
	udev_sync=0
	udev_rules=0
	monitoring=0
	retry_deactivation=0
}
backup {
	backup=0
	archive=0
}
log {
	silent=1
	verbose=0
	syslog=0
	prefix=""
	command_names=0
	report_command_log=1
	command_log_selection="log_type=error || log_context=shell"
}
report {
	output_format="json"
	time_format="%s"
	list_item_separator=","
}
"#;

/// The text of an lvm.conf.
///
/// # Errors
/// [`EngineError::Unspeakable`]: a device has a name that no filter can hold.
pub(super) fn render(host: &Host, sight: Sight<'_>) -> Result<String, EngineError> {
    let locking_dir = quoted(&host.locking_dir.to_string_lossy());
    let mut text = format!(
        "{FIXED}global {{\n\tuse_aio=0\n\tuse_lvmpolld=0\n\tuse_lvmlockd=0\n\tunits=\"b\"\n\tsuffix=0\n\tlocking_dir={locking_dir}\n"
    );
    match &host.system_id {
        Some(id) => {
            text +=
                &format!("\tsystem_id_source=\"lvmlocal\"\n}}\nlocal {{\n\tsystem_id={}\n}}\n", quoted(id));
        }
        None => text += "\tsystem_id_source=\"none\"\n}\n",
    }
    text += &match sight {
        // A disk that somebody suspended hides no group on other disks; its own lacks a disk for a while.
        Sight::Everything => "devices {\n\tscan=[\"/dev\"]\n\tignore_suspended_devices=1\n}\n".to_owned(),
        Sight::Only(devices, links) => {
            let (scan, filter) = (quoted(&links.folder().to_string_lossy()), filter(devices, links)?);
            format!("devices {{\n\tscan=[{scan}]\n\tfilter=[{filter}]\n}}\n")
        }
    };
    Ok(text)
}

fn filter(devices: &[PathBuf], links: &Links) -> Result<String, EngineError> {
    let accepted: Result<Vec<String>, _> =
        devices.iter().map(|device| accept(device).and_then(|_| accept(&links.to(device)))).collect();
    let mut rules = accepted?;
    rules.push("\"r|.*|\"".to_owned());
    Ok(rules.join(", "))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn host(system_id: Option<&str>) -> Host {
        Host { locking_dir: "/run/lock/lvm".into(), system_id: system_id.map(str::to_owned) }
    }

    fn links() -> Links {
        Links::new(Path::new("/run/q")).unwrap()
    }

    #[test]
    fn the_filter_accepts_the_given_devices_and_rejects_all_others() {
        let devices = ["/dev/sda".into(), "/dev/mapper/luks-1.2".into(), "/dev/disk/by-path/pci-0:1".into()];
        let text = render(&host(None), Sight::Only(&devices, &links())).unwrap();
        assert!(text.contains("\tscan=[\"/run/q/links\"]\n") && !text.contains("scan=[\"/dev\"]"), "{text}");
        let filter = text.lines().find(|line| line.trim().starts_with("filter=")).unwrap();
        assert_eq!(
            filter.trim(),
            r#"filter=["a|^/run/q/links/dev/sda$|", "a|^/run/q/links/dev/mapper/luks-1[.]2$|", "a|^/run/q/links/dev/disk/by-path/pci-0[:]1$|", "r|.*|"]"#
        );
        assert!(!render(&host(None), Sight::Everything).unwrap().contains("filter="));
    }

    #[test]
    fn a_device_that_no_filter_can_hold_is_refused() {
        for device in
            ["/dev/a|b", "/dev/a\"b", "/dev/a\\b", "/dev/a b", "/dev/a]", "/dev/ü", "/dev/../a", "sda", ""]
        {
            let devices = [PathBuf::from(device)];
            assert!(render(&host(None), Sight::Only(&devices, &links())).is_err(), "{device}");
        }
    }

    #[test]
    fn the_hosts_system_id_is_taken_over() {
        let text = render(&host(Some("node-1")), Sight::Everything).unwrap();
        assert!(text.contains("system_id_source=\"lvmlocal\"") && text.contains("system_id=\"node-1\""));
        assert!(render(&host(None), Sight::Everything).unwrap().contains("system_id_source=\"none\""));
    }
}
