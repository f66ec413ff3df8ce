//! What the log says about a call: names only, never a request. They are noted before anything is checked, so
//! that a refusal has them too.

use tracing::{Span, field};

/// As many characters as CSI allows bytes in an id or a name. What is longer is shown by its beginning.
const SHOWN: usize = 128;

/// Makes a volume's id part of everything that is logged about the present call.
pub(crate) fn volume(id: &str) {
    note("volume_id", id);
}

/// Makes a CSI name part of everything that is logged about the present call.
pub(crate) fn name(name: &str) {
    note("name", name);
}

/// The text comes from outside and may hold anything: what would not stay in its line is escaped.
fn note(field: &str, text: &str) {
    if !text.is_empty() {
        let shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        Span::current().record(field, field::display(shown));
    }
}
