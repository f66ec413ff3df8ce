//! The node's half of what [`crate::agent`] describes.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::services::Services;
use crate::agent::{Answer, Output, PORT, Request, receive, send};
use crate::program::command;
use crate::{Error, say};

/// Answers requests until the guest ends.
pub(super) async fn serve(address: Ipv4Addr, services: Services) -> Result<(), Error> {
    let listener = TcpListener::bind((address, PORT)).await.map_err(Error::io("listen for requests"))?;
    loop {
        let (connection, _) = listener.accept().await.map_err(Error::io("take a request"))?;
        let services = services.clone();
        #[expect(clippy::disallowed_methods, reason = "each request ends by itself or with the guest")]
        tokio::spawn(async move {
            if let Err(error) = serve_one(connection, &services).await {
                say(&format!("a request: {error}"));
            }
        });
    }
}

async fn serve_one(mut connection: TcpStream, services: &Services) -> std::io::Result<()> {
    let request = receive(&mut connection).await?;
    let answer = match request {
        Request::Run { arguments, input, limit } => run(&arguments, &input, limit).await.map(Answer::Ran),
        Request::Service { service, action } => services.change(service, action).await.map(|()| Answer::Done),
    };
    send(&mut connection, &answer.unwrap_or_else(|error| Answer::Failed(error.chain()))).await
}

/// Runs a program to its end. It does not outlive its limit.
async fn run(arguments: &[String], input: &str, limit: Duration) -> Result<Output, Error> {
    let (program, arguments) = arguments.split_first().ok_or_else(|| Error::other("no program is named"))?;
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| Error::Start { program: program.clone(), source })?;
    let run = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read is no failure of ours.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        child.wait_with_output().await
    };
    let output = timeout(limit, run)
        .await
        .map_err(|_| Error::Late { what: format!("{program} to end"), limit, seen: "it runs".into() })?
        .map_err(Error::io(format!("wait for {program}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let status = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
    Ok(Output { status, stdout: text(&output.stdout), stderr: text(&output.stderr) })
}
