//! What a page tells crawlers to do with it: `<meta name=robots>` and `X-Robots-Tag`.

/// Whether a page may be kept and its links followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Its content must not be kept.
    pub noindex: bool,
    /// Its links must not be followed.
    pub nofollow: bool,
}

/// Directives whose value follows a colon. A colon may also follow the name of a bot.
const WITH_VALUE: &[&str] =
    &["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

impl Directives {
    /// Adds the content of a `meta` element, such as `noindex, nofollow`.
    pub fn add(&mut self, content: &str) {
        for word in content.split([',', ' ']) {
            let is = |directive: &str| word.trim().eq_ignore_ascii_case(directive);
            self.noindex |= is("noindex") || is("none");
            self.nofollow |= is("nofollow") || is("none");
        }
    }

    /// Adds what an `X-Robots-Tag` header, such as `noindex` or `otherbot: noindex`, tells the bot with this name.
    pub fn add_header(&mut self, value: &str, bot: &str) {
        let mut applies = true;
        for part in value.split(',') {
            let directive = match part.split_once(':') {
                Some((name, directive)) if !is_one_of(WITH_VALUE, name.trim()) => {
                    applies = name.trim().eq_ignore_ascii_case(bot);
                    directive
                }
                _ => part,
            };
            if applies {
                self.add(directive);
            }
        }
    }
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_element_says_what_may_be_done() {
        for (content, noindex, nofollow) in [
            ("noindex", true, false),
            ("NoFollow", false, true),
            ("index, nofollow", false, true),
            ("none", true, true),
            ("all", false, false),
            ("noindex nofollow", true, true),
            ("noindexed,max-snippet:20", false, false),
            ("", false, false),
        ] {
            let mut directives = Directives::default();
            directives.add(content);
            assert_eq!(directives, Directives { noindex, nofollow }, "{content}");
        }
    }

    #[test]
    fn a_header_may_be_for_another_bot() {
        for (value, noindex, nofollow) in [
            ("noindex", true, false),
            ("otherbot: noindex", false, false),
            ("fetchwell: noindex, nofollow", true, true),
            ("otherbot: none, Fetchwell: nofollow", false, true),
            ("nofollow, otherbot: noindex", false, true),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", true, false),
        ] {
            let mut directives = Directives::default();
            directives.add_header(value, "Fetchwell");
            assert_eq!(directives, Directives { noindex, nofollow }, "{value}");
        }
    }
}
