//! The elements that matter here. All others are [`Tag::Other`], and inline.

/// No known name is longer.
const LONGEST_NAME_BYTES: usize = 10;

macro_rules! tags {
    (
        block { $($block:ident $block_name:literal),+ $(,)? }
        inline { $($inline:ident $inline_name:literal),+ $(,)? }
    ) => {
        /// An element's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Tag { $($block,)+ $($inline,)+ Other }

        impl Tag {
            /// Looks up a name, ignoring case.
            pub(crate) fn from_name(name: &str) -> Tag {
                let mut lower = [0; LONGEST_NAME_BYTES];
                let Some(lower) = lower.get_mut(..name.len()) else { return Tag::Other };
                lower.copy_from_slice(name.as_bytes());
                lower.make_ascii_lowercase();
                match &*lower {
                    $($block_name => Tag::$block,)+
                    $($inline_name => Tag::$inline,)+
                    _ => Tag::Other,
                }
            }

            /// Whether it begins on a new line.
            pub(crate) fn is_block(self) -> bool {
                matches!(self, $(Tag::$block)|+)
            }
        }
    };
}

tags! {
    block {
        Address b"address", Article b"article", Aside b"aside", Blockquote b"blockquote",
        Body b"body", Caption b"caption", Center b"center", Dd b"dd", Details b"details",
        Dialog b"dialog", Div b"div", Dl b"dl", Dt b"dt", Fieldset b"fieldset",
        Figcaption b"figcaption", Figure b"figure", Footer b"footer", Form b"form", H1 b"h1",
        H2 b"h2", H3 b"h3", H4 b"h4", H5 b"h5", H6 b"h6", Head b"head", Header b"header", Hr b"hr",
        Html b"html", Li b"li", Main b"main", Menu b"menu", Nav b"nav", Ol b"ol",
        SelectOption b"option", P b"p", Pre b"pre", Search b"search", Section b"section",
        Select b"select", Summary b"summary", Table b"table", Tbody b"tbody", Td b"td",
        Tfoot b"tfoot", Th b"th", Thead b"thead", Title b"title", Tr b"tr", Ul b"ul",
    }
    inline {
        A b"a", B b"b", Base b"base", Br b"br", Button b"button", Canvas b"canvas", Code b"code",
        Col b"col", Del b"del", Em b"em", Embed b"embed", I b"i", Iframe b"iframe", Img b"img",
        Input b"input", Kbd b"kbd", Link b"link", Math b"math", Meta b"meta", Noscript b"noscript",
        Object b"object", Param b"param", S b"s", Samp b"samp", Script b"script",
        Source b"source", Span b"span", Strike b"strike", Strong b"strong", Style b"style",
        Svg b"svg", Template b"template", Textarea b"textarea", Time b"time", Track b"track",
        Wbr b"wbr",
    }
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
