use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of standard error is kept, in bytes: enough for the message that matters, which is last.
const KEPT: usize = 4096;

/// The end of what a program wrote to standard error.
#[derive(Debug, Default)]
pub struct Tail(Vec<u8>);

impl Tail {
    /// Takes in what was read, and forgets what is not needed any more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(KEPT);
        self.0.drain(..excess);
    }

    /// The end as text, without blanks around.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

/// Reads a stream to its end and keeps the end of it.
pub(super) async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let mut tail = Tail::default();
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(tail.text());
        }
        tail.push(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn only_the_end_is_kept() {
        let long = "x".repeat(100_000) + " the end\n";
        let kept = super::read(Some(long.as_bytes())).await.unwrap();
        assert!(kept.ends_with("the end") && kept.len() <= super::KEPT);
    }
}
