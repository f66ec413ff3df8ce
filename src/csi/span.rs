//! What the log says about a call: names only, never a request.

use std::fmt::Display;

use tracing::{Span, field};

/// Makes a volume's id part of everything that is logged about the present call.
pub(super) fn volume(id: &dyn Display) {
    Span::current().record("volume_id", field::display(id));
}

/// Makes a CSI name part of everything that is logged about the present call.
pub(super) fn name(name: &dyn Display) {
    Span::current().record("name", field::display(name));
}
