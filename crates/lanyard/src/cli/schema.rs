//! `lanyard schema`: the API as an `OpenAPI` document. Hidden: for those who build clients.

use crate::context::Context;
use crate::failure::Failure;

/// Print the API as an `OpenAPI` document
#[derive(Debug, clap::Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        context.out.json(&lanyard_daemon::openapi())
    }
}
