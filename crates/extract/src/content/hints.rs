//! What an element's attributes say about its purpose, read in one pass.

use super::words::{self, Meaning};
use crate::page::Element;

/// Roles of elements that surround articles.
const NOISE_ROLES: &str =
    "banner complementary contentinfo dialog alertdialog navigation search menu";

/// The hints as flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hints {
    pub(super) is_frame: bool,
    pub(super) is_consent: bool,
    pub(super) is_navigation: bool,
    pub(super) is_noise: bool,
    /// Its role says that it is noise; this is not inferred from a name.
    pub(super) is_stated_noise: bool,
    pub(super) is_aside: bool,
    pub(super) is_related: bool,
    pub(super) is_comment: bool,
    pub(super) is_review: bool,
    pub(super) is_shop: bool,
    pub(super) is_profile: bool,
    pub(super) is_detail: bool,
    /// About the article's author.
    pub(super) is_author: bool,
    pub(super) is_body: bool,
    /// The element states explicitly that it is the article's body; this is not inferred from a class name.
    pub(super) is_stated_body: bool,
    /// Its attributes say that it describes a product.
    pub(super) is_product: bool,
    pub(super) is_main: bool,
    pub(super) is_hidden: bool,
    /// It is hidden from screen readers, and often visible.
    pub(super) is_aria_hidden: bool,
    /// It is hidden until the reader selects its tab.
    pub(super) is_tab_panel: bool,
}

impl Hints {
    pub(super) fn of(element: &Element<'_>) -> Hints {
        let mut hints = Hints::default();
        for (name, value) in element.attributes() {
            match name.len() {
                2 if name.eq_ignore_ascii_case("id") => hints.add_name(value),
                4 if name.eq_ignore_ascii_case("role") => hints.add_role(value),
                5 if name.eq_ignore_ascii_case("class") => hints.add_class(value),
                5 if name.eq_ignore_ascii_case("style") => {
                    hints.is_hidden |= is_invisible_style(value);
                }
                6 if name.eq_ignore_ascii_case("hidden") => hints.is_hidden = true,
                8 if name.eq_ignore_ascii_case("itemprop") => hints.add_property(value),
                8 if name.eq_ignore_ascii_case("itemtype") => {
                    hints.is_product |= value.trim_end().ends_with("schema.org/Product");
                }
                11 if name.eq_ignore_ascii_case("aria-hidden") => {
                    hints.is_aria_hidden |= value.eq_ignore_ascii_case("true");
                }
                _ => {}
            }
        }
        hints.is_body |= hints.is_stated_body;
        hints
    }

    /// The hints that remain if names are ignored: most hints from other attributes, and those from the names of
    /// bodies, comments, reviews and consent requests.
    pub(super) fn without_names(self) -> Hints {
        Hints {
            is_consent: self.is_consent,
            is_comment: self.is_comment,
            is_review: self.is_review,
            is_noise: self.is_stated_noise,
            is_stated_noise: self.is_stated_noise,
            is_body: self.is_body,
            is_stated_body: self.is_stated_body,
            is_product: self.is_product,
            is_main: self.is_main,
            is_hidden: self.is_hidden,
            is_aria_hidden: self.is_aria_hidden,
            is_tab_panel: self.is_tab_panel,
            ..Hints::default()
        }
    }

    /// WordPress writes the subjects of an entry into its class: `hentry category-advertising tag-newsletter`. They do
    /// not say what the element is.
    fn add_class(&mut self, names: &str) {
        if !names.contains("hentry") {
            self.add_name(names);
            return;
        }
        let is_subject = |name: &&str| name.starts_with("tag-") || name.starts_with("category-");
        names.split_ascii_whitespace().filter(|name| !is_subject(name)).for_each(|name| {
            self.add_name(name);
        });
    }

    fn add_name(&mut self, name: &str) {
        words::meanings(name, |meaning| match meaning {
            Meaning::Frame => self.is_frame = true,
            Meaning::Consent => self.is_consent = true,
            Meaning::Navigation => self.is_navigation = true,
            Meaning::Noise => self.is_noise = true,
            Meaning::Aside => self.is_aside = true,
            Meaning::Related => self.is_related = true,
            Meaning::Comment => self.is_comment = true,
            Meaning::Review => self.is_review = true,
            Meaning::Shop => self.is_shop = true,
            Meaning::Profile => self.is_profile = true,
            Meaning::Detail => self.is_detail = true,
            Meaning::Author => self.is_author = true,
            Meaning::Body => self.is_body = true,
        });
    }

    /// A property of the article, as microdata.
    fn add_property(&mut self, property: &str) {
        self.is_stated_body |= property.eq_ignore_ascii_case("articleBody");
        self.is_author |= property.eq_ignore_ascii_case("author");
        self.is_detail |= property.eq_ignore_ascii_case("datePublished")
            || property.eq_ignore_ascii_case("dateModified");
    }

    fn add_role(&mut self, role: &str) {
        let role = role.trim();
        self.is_main |= role.eq_ignore_ascii_case("main");
        self.is_tab_panel |= role.eq_ignore_ascii_case("tabpanel");
        self.is_stated_noise |=
            NOISE_ROLES.split_whitespace().any(|noise| role.eq_ignore_ascii_case(noise));
        self.is_noise |= self.is_stated_noise;
    }
}

fn is_invisible_style(style: &str) -> bool {
    style.split(';').any(|rule| {
        rule.split_once(':').is_some_and(|(key, value)| {
            let key = key.trim();
            let value = value.trim();
            key.eq_ignore_ascii_case("display") && value.starts_with("none")
                || key.eq_ignore_ascii_case("visibility") && value.starts_with("hidden")
        })
    })
}
