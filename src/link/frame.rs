use std::io;

use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest message of a hello, in bytes. A token has one or two thousand; whoever announces more than
/// this is no node of ours.
const LONGEST: u32 = 64 << 10;

/// Reads one message: its length in four bytes, the most significant first, and then itself. Nothing
/// beyond it is taken.
///
/// # Errors
/// The stream ended or failed, the length is beyond the bound, or the bytes are no such message.
pub(super) async fn read<M: Message + Default>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<M> {
    let length = stream.read_u32().await?;
    if length > LONGEST {
        return Err(wrong(format!("a message of {length} bytes is announced, and {LONGEST} are allowed")));
    }
    // The length is not believed before the bytes are there.
    let mut bytes = Vec::new();
    let read = stream.take(u64::from(length)).read_to_end(&mut bytes).await?;
    if read < usize::try_from(length).unwrap_or(usize::MAX) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    M::decode(bytes.as_slice()).map_err(|error| wrong(error.to_string()))
}

/// Writes one message likewise.
///
/// # Errors
/// The stream failed, or the message is beyond the bound.
pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &impl Message) -> io::Result<()> {
    let bytes = message.encode_to_vec();
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| wrong(format!("a message of {} bytes is too long", bytes.len())))?;
    stream.write_all(&[length.to_be_bytes().as_slice(), &bytes].concat()).await?;
    stream.flush().await
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::quarry::v1::Welcome;

    #[tokio::test]
    async fn a_message_reads_back_and_nothing_beyond_it_is_taken() {
        let sent = Welcome { version: 7, driver_version: "1.2".to_owned(), ..Default::default() };
        let mut wire = Vec::new();
        write(&mut wire, &sent).await.unwrap();
        wire.extend_from_slice(b"PRI");
        let mut rest = wire.as_slice();
        assert_eq!(read::<Welcome>(&mut rest).await.unwrap(), sent);
        assert_eq!(rest, b"PRI");
    }

    #[tokio::test]
    async fn what_is_no_frame_is_an_error() {
        let http = b"GET / HTTP/1.1\r\n\r\n".as_slice();
        let cut = [0, 0, 0, 9, 8].as_slice();
        let noise = [0, 0, 0, 2, 0xff, 0xff].as_slice();
        for mut bytes in [http, cut, noise, &[][..], &[0, 0]] {
            assert!(read::<Welcome>(&mut bytes).await.is_err(), "{bytes:?}");
        }
        let long = Welcome { refusal: "x".repeat(1 << 20), ..Default::default() };
        assert!(write(&mut Vec::new(), &long).await.is_err());
    }
}
