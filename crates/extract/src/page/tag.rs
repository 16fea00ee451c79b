//! The elements that matter here. All others are [`Tag::Other`], and inline.

/// No known name is longer.
const LONGEST_NAME_BYTES: usize = 10;

macro_rules! tags {
    ($($variant:ident $name:literal),+ $(,)?) => {
        /// An element's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Tag { $($variant,)+ Other }

        impl Tag {
            /// Looks up a name, ignoring case.
            pub(crate) fn from_name(name: &str) -> Tag {
                let mut lower = [0; LONGEST_NAME_BYTES];
                let Some(lower) = lower.get_mut(..name.len()) else { return Tag::Other };
                lower.copy_from_slice(name.as_bytes());
                lower.make_ascii_lowercase();
                match &*lower {
                    $($name => Tag::$variant,)+
                    _ => Tag::Other,
                }
            }
        }
    };
}

tags! {
    A b"a", Address b"address", Article b"article", Aside b"aside", B b"b", Base b"base",
    Blockquote b"blockquote", Body b"body", Br b"br", Button b"button", Canvas b"canvas",
    Caption b"caption", Center b"center", Code b"code", Col b"col", Dd b"dd", Del b"del",
    Details b"details", Dialog b"dialog", Div b"div", Dl b"dl", Dt b"dt", Em b"em",
    Embed b"embed", Fieldset b"fieldset", Figcaption b"figcaption", Figure b"figure",
    Footer b"footer", Form b"form", H1 b"h1", H2 b"h2", H3 b"h3", H4 b"h4", H5 b"h5", H6 b"h6",
    Head b"head", Header b"header", Hr b"hr", Html b"html", I b"i", Iframe b"iframe", Img b"img",
    Input b"input", Kbd b"kbd", Li b"li", Link b"link", Main b"main", Math b"math", Menu b"menu",
    Meta b"meta", Nav b"nav", Noscript b"noscript", Object b"object", Ol b"ol", SelectOption b"option",
    P b"p", Param b"param", Pre b"pre", S b"s", Samp b"samp", Script b"script",
    Search b"search", Section b"section", Select b"select", Source b"source", Span b"span", Strike b"strike",
    Strong b"strong", Style b"style", Summary b"summary", Svg b"svg", Table b"table",
    Tbody b"tbody", Td b"td", Template b"template", Textarea b"textarea", Tfoot b"tfoot",
    Th b"th", Thead b"thead", Time b"time", Title b"title", Tr b"tr", Track b"track", Ul b"ul",
    Wbr b"wbr",
}

impl Tag {
    /// Whether it has neither content nor an end tag.
    pub(crate) fn is_void(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Base | Br | Col | Embed | Hr | Img | Input | Link | Meta | Param | Source | Track | Wbr
        )
    }

    /// Whether its content is not for readers. Much of it is not markup, so it is skipped by searching for the end tag.
    pub(crate) fn is_skipped(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Canvas | Iframe | Math | Noscript | Object | Script | Style | Svg | Template | Textarea
        )
    }

    /// Whether it begins on a new line.
    pub(crate) fn is_block(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Address
                | Article
                | Aside
                | Blockquote
                | Body
                | Caption
                | Center
                | Dd
                | Details
                | Dialog
                | Div
                | Dl
                | Dt
                | Fieldset
                | Figcaption
                | Figure
                | Footer
                | Form
                | Head
                | Header
                | Hr
                | Html
                | Li
                | Main
                | Menu
                | Nav
                | Ol
                | SelectOption
                | P
                | Pre
                | Search
                | Section
                | Select
                | Summary
                | Table
                | Tbody
                | Td
                | Tfoot
                | Th
                | Thead
                | Title
                | Tr
                | Ul
        ) || self.is_heading()
    }

    pub(crate) fn is_cell(self) -> bool {
        matches!(self, Tag::Td | Tag::Th)
    }

    pub(crate) fn is_heading(self) -> bool {
        self.heading_level().is_some()
    }

    /// 1 to 6.
    pub(crate) fn heading_level(self) -> Option<usize> {
        use Tag::*;
        [H1, H2, H3, H4, H5, H6].iter().position(|tag| *tag == self).map(|index| index + 1)
    }

    /// Whether it may be in the head; any other element ends the head.
    pub(crate) fn is_head_content(self) -> bool {
        use Tag::*;
        matches!(self, Base | Link | Meta | Title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_in_any_case() {
        assert_eq!(Tag::from_name("BlockQuote"), Tag::Blockquote);
        assert_eq!(Tag::from_name("x-unknown"), Tag::Other);
        assert_eq!(Tag::from_name(&"a".repeat(1000)), Tag::Other);
    }
}
