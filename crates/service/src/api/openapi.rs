//! The OpenAPI document: what the code says of itself.

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, OpenApi};
use utoipa::{Modify, OpenApi as _};

/// The document without its paths, which the routes add.
pub(super) fn document() -> OpenApi {
    Document::openapi()
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Fetchwell",
        description = "Send it URLs; it fetches the pages politely, loses none, and keeps the results for you.",
        license(name = "MIT OR Apache-2.0")
    ),
    modifiers(&Token),
    tags(
        (name = "Messages", description = "Send messages, and see what became of them."),
        (name = "Outbox", description = "Read results in the order in which they were stored."),
        (name = "Oversight", description = "For viewers, who see what all callers do, and operators, who act on it."),
        (name = "Sites", description = "See how sites stand, and steer them. For viewers and operators."),
        (name = "Operations", description = "For whoever runs it. These need no token."),
    )
)]
struct Document;

/// How callers say who they are.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut OpenApi) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some("A token from `fetchwell callers add NAME`: fw_…".to_owned());
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}
