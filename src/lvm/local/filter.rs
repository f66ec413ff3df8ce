use std::path::{Component, Path};

use crate::lvm::EngineError;

/// A rule that accepts one path. What could mean something in a regular expression stands in brackets,
/// so that nothing needs a backslash, which the configuration would read too.
///
/// # Errors
/// [`EngineError::Unspeakable`]: no filter can hold it.
pub(super) fn accept(path: &Path) -> Result<String, EngineError> {
    let unspeakable = || EngineError::Unspeakable(format!("no filter can hold the path {path:?}"));
    let plain = path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    let path = path.to_str().filter(|_| plain).ok_or_else(unspeakable)?;
    let letter = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '/' | '_' | '-' => Ok(c.to_string()),
        '.' | ':' | '+' | '@' | '=' | ',' | '%' | '#' | '~' => Ok(format!("[{c}]")),
        _ => Err(unspeakable()),
    };
    Ok(format!("\"a|^{}$|\"", path.chars().map(letter).collect::<Result<String, _>>()?))
}
