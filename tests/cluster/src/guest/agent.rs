//! The node's half of what [`crate::agent`] describes.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::services::Services;
use crate::agent::{Answer, Output, PORT, Request, receive, send};
use crate::program::{command, finish};
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

async fn run(arguments: &[String], input: &str, limit: Duration) -> Result<Output, Error> {
    let (program, arguments) = arguments.split_first().ok_or_else(|| Error::other("no program is named"))?;
    let output = finish(command(program).args(arguments), limit, input).await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let status = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
    Ok(Output { status, stdout: text(&output.stdout), stderr: text(&output.stderr) })
}
