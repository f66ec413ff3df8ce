//! The log: lines on standard error, as text or as JSON.

mod level;

pub use level::{LogFilter, LogFormat};

use std::io::{self, IsTerminal as _};

use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::fmt::MakeWriter;

/// Starts the log of the whole process, and makes panics part of it.
///
/// # Errors
/// A log was started before.
pub fn start(filter: &LogFilter, format: LogFormat) -> Result<(), SetGlobalDefaultError> {
    let colours = io::stderr().is_terminal();
    tracing::subscriber::set_global_default(subscriber(filter, format, colours, io::stderr))?;
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(at, panic = panic.payload_as_str().unwrap_or("without words"), "panic");
    }));
    Ok(())
}

/// What writes events to `writer`. Colours are for text only.
pub fn subscriber<W>(
    filter: &LogFilter,
    format: LogFormat,
    colours: bool,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter.to_filter()).with_writer(writer);
    match format {
        LogFormat::Text => Box::new(builder.with_ansi(colours).finish()),
        LogFormat::Json => {
            Box::new(builder.json().flatten_event(true).with_span_list(false).with_ansi(false).finish())
        }
    }
}
