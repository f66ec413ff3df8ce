//! Names made from contents.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a list of texts; the lengths count too, so that no two lists have the same one.
#[derive(Debug, Clone)]
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(Sha256::new())
    }

    pub(crate) fn add(&mut self, text: impl AsRef<[u8]>) -> &mut Digest {
        let text = text.as_ref();
        self.0.update(text.len().to_le_bytes());
        self.0.update(text);
        self
    }

    pub(crate) fn to_hex(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

/// The SHA-256 of these bytes alone, as others compute it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_apart_by_where_their_texts_end() {
        let one = Digest::new().add("ab").add("c").to_hex();
        let two = Digest::new().add("a").add("bc").to_hex();
        assert_ne!(one, two);
    }

    #[test]
    fn bytes_have_the_digest_that_everybody_knows() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
