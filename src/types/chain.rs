use std::error::Error;

/// An error and what led to it, the nearest cause first: `a: b: c`. A message may have several lines.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(source.to_string().trim_end());
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot start")]
    struct Outer(#[source] io::Error);

    #[test]
    fn causes_follow_in_order() {
        assert_eq!(chain(&Outer(io::Error::other("no room\n"))), "cannot start: no room");
    }
}
