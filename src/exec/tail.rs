use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of standard error is kept, in bytes: enough for the message that matters, which is last.
const KEPT: usize = 4096;

/// Reads a stream to its end and keeps the end of it, as text without blanks around.
pub(super) async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let mut kept = Vec::with_capacity(KEPT);
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(String::from_utf8_lossy(&kept).trim().to_owned());
        }
        kept.extend_from_slice(&chunk[..count]);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
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
