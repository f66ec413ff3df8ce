use crate::types::Bytes;

/// Lines of text in columns under a heading, the widest cell of each setting its width.
pub fn table<const N: usize>(heading: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = std::iter::once(heading.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// What stands where there is nothing to say.
pub(super) const NOTHING: &str = "-";

/// A text, if there is one to say.
pub(super) fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

/// A size for people, in the largest unit that it has one of: rounded down, so that a table never promises
/// more than there is.
pub(super) fn size(bytes: Bytes) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut tenths = u128::from(bytes.get()) * 10;
    let mut unit = "B";
    for larger in UNITS {
        if tenths < 10240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, larger);
    }
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, tenth) => format!("{whole}.{tenth} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["first", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(["A", "LONG"], rows), "A      LONG\nfirst  x\n");
    }

    #[test]
    fn sizes_are_short_and_never_too_large() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 20, "1 MiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(size(Bytes::new(bytes)), text);
        }
    }
}
