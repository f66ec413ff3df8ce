//! The smallest partition table that blkid takes for a GPT (UEFI specification, "GPT Disk Layout").

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SECTOR: u64 = 512;

/// Where the table's entries lie, by number of sector, and how many bytes they take.
const ENTRIES: (u64, usize) = (2, 128 * 128);

/// Writes an empty table to a device.
pub(super) fn write(device: &Path) {
    let mut file = File::options().read(true).write(true).open(device).unwrap();
    let sectors = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap() / SECTOR;
    file.write_all_at(&protective_record(), 0).unwrap();
    file.write_all_at(&header(sectors), SECTOR).unwrap();
    file.write_all_at(&[0; ENTRIES.1], ENTRIES.0 * SECTOR).unwrap();
    file.sync_all().unwrap();
}

/// A record that tells older programs that the disk is not free.
fn protective_record() -> Vec<u8> {
    let mut record = vec![0; 512];
    record[446 + 4] = 0xee;
    record[446 + 8] = 1;
    record[446 + 12..446 + 16].fill(0xff);
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    record
}

fn header(sectors: u64) -> Vec<u8> {
    let mut header = b"EFI PART\0\0\x01\0".to_vec();
    header.extend(92_u32.to_le_bytes());
    header.extend([0; 8]);
    for place in [1, sectors - 1, 34, sectors - 34] {
        header.extend(place.to_le_bytes());
    }
    header.extend([0x51; 16]);
    header.extend(ENTRIES.0.to_le_bytes());
    header.extend([128_u32, 128, checksum(&[0; ENTRIES.1])].map(u32::to_le_bytes).concat());
    let sum = checksum(&header);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The CRC-32 of ISO 3309.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
