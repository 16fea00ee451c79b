//! The OpenAPI document, generated from the handlers and their types.

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, OpenApi};
use utoipa::{Modify, OpenApi as _};

use crate::problem::ProblemBody;

/// The document without its paths, which the routes add.
pub(super) fn document() -> OpenApi {
    Document::openapi()
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        // Generators name their packages after it: without "API", theirs would have the name of our client.
        title = "Fetchwell API",
        description = "Send URLs; Fetchwell fetches the pages politely, loses none, and stores the results for you.",
        license(name = "MIT OR Apache-2.0")
    ),
    modifiers(&Token),
    // Groups of problem responses do not register their schemas.
    components(schemas(ProblemBody)),
    tags(
        (name = "Messages", description = "Send messages, and read their state and result."),
        (name = "Batches", description = "Watch, read and cancel messages that were sent together."),
        (name = "Crawls", description = "Start crawls, read their results, and cancel them."),
        (name = "Outbox", description = "Read results in the order in which they were stored."),
        (name = "Webhooks", description = "Your deliveries to webhooks: list and replay them, and rotate your secret."),
        (name = "Callers", description = "Callers and their tokens, for operators."),
        (name = "Oversight", description = "Messages of all callers, for viewers; operators can also act on them."),
        (name = "Sites", description = "Show the state of sites; pause, resume and rate-limit them. For viewers and operators."),
        (name = "Operations", description = "Health checks and metrics. These need no token."),
    )
)]
struct Document;

/// Adds the security scheme for bearer tokens.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut OpenApi) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some("A token from `fetchwell callers add NAME`: fw_…".to_owned());
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_describes_problems_without_any_path() {
        let schemas = document().components.unwrap().schemas;
        let names: Vec<&String> = schemas.keys().collect();
        assert_eq!(names, ["FieldError", "Problem"]);
    }
}
