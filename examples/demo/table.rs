/// What separates the cells of a program's output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cells {
    /// Blanks, any number of them.
    Blanks,
    /// A bar, as LVM was told.
    Bars,
    /// Nothing: a line is a line.
    None,
}

impl Cells {
    /// Whether the first line names the columns.
    pub(crate) const fn has_headings(self) -> bool {
        matches!(self, Self::Bars)
    }
}

/// Aligns the cells of a program's output, which has names in it that were made shorter.
pub(crate) fn align(text: &str, cells: Cells) -> Vec<String> {
    let split = |line: &str| -> Vec<String> {
        match cells {
            Cells::Blanks => line.split_whitespace().map(str::to_owned).collect(),
            Cells::None => vec![line.to_owned()],
            Cells::Bars => line.split('|').map(|cell| cell.trim().to_owned()).collect(),
        }
    };
    let rows: Vec<Vec<String>> = text.lines().map(split).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
