//! Determines the language of the text.

use whatlang::Lang;

/// How much of the text is examined: more hardly improves the result.
const SAMPLE_BYTES: usize = 1_000;

/// So much is enough to see that the page declares the right language, as most pages do.
const FIRST_SAMPLE_BYTES: usize = 200;

/// A shorter text is not reliable.
const MIN_SAMPLE_BYTES: usize = 100;

/// The declared language, unless the text is certainly in another one: many pages use a template in another language.
pub(crate) fn best(declared: Option<String>, text: &str) -> Option<String> {
    let first_bytes = |bytes| text.get(..text.floor_char_boundary(bytes)).unwrap_or(text);
    let sample = first_bytes(SAMPLE_BYTES);
    if sample.len() < MIN_SAMPLE_BYTES {
        return declared;
    }
    let primary = declared.as_deref().and_then(|code| code.split('-').next());
    let is_declared =
        |code: &str| primary.is_some_and(|primary| primary.eq_ignore_ascii_case(code));
    // The fast detector is enough if it agrees with the page.
    let agrees =
        |text| is_declared(two_letters(whichlang::detect_language(text).three_letter_code()));
    let is_longer = sample.len() > FIRST_SAMPLE_BYTES;
    if primary.is_some() && (agrees(first_bytes(FIRST_SAMPLE_BYTES)) || is_longer && agrees(sample))
    {
        return declared;
    }
    let guess = whatlang::detect(sample).filter(whatlang::Info::is_reliable);
    let code = guess.map(|guess| code(guess.lang()));
    match code {
        Some(code) if !is_declared(code) => Some(code.to_owned()),
        _ => declared,
    }
}

fn code(lang: Lang) -> &'static str {
    two_letters(lang.code())
}

/// The two-letter code that HTML uses for a three-letter one, if there is one.
#[rustfmt::skip]
fn two_letters(code: &'static str) -> &'static str {
    const CODES: &[(&str, &str)] = &[
        ("afr", "af"), ("aka", "ak"), ("amh", "am"), ("ara", "ar"), ("aze", "az"), ("bel", "be"),
        ("ben", "bn"), ("bul", "bg"), ("cat", "ca"), ("ces", "cs"), ("cmn", "zh"), ("cym", "cy"),
        ("dan", "da"), ("deu", "de"), ("ell", "el"), ("eng", "en"), ("epo", "eo"), ("est", "et"),
        ("fin", "fi"), ("fra", "fr"), ("guj", "gu"), ("heb", "he"), ("hin", "hi"), ("hrv", "hr"),
        ("hun", "hu"), ("hye", "hy"), ("ind", "id"), ("ita", "it"), ("jav", "jv"), ("jpn", "ja"),
        ("kan", "kn"), ("kat", "ka"), ("khm", "km"), ("kor", "ko"), ("lat", "la"), ("lav", "lv"),
        ("lit", "lt"), ("mal", "ml"), ("mar", "mr"), ("mkd", "mk"), ("mya", "my"), ("nep", "ne"),
        ("nld", "nl"), ("nob", "nb"), ("ori", "or"), ("pan", "pa"), ("pes", "fa"), ("pol", "pl"),
        ("por", "pt"), ("ron", "ro"), ("rus", "ru"), ("sin", "si"), ("slk", "sk"), ("slv", "sl"),
        ("sna", "sn"), ("spa", "es"), ("srp", "sr"), ("swe", "sv"), ("tam", "ta"), ("tel", "te"),
        ("tgl", "tl"), ("tha", "th"), ("tuk", "tk"), ("tur", "tr"), ("ukr", "uk"), ("urd", "ur"),
        ("uzb", "uz"), ("vie", "vi"), ("yid", "yi"), ("zul", "zu"),
    ];
    CODES.iter().find(|(three, _)| *three == code).map_or(code, |(_, two)| two)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "The bees came back on the first warm day of March, as they have for \
        sixty years, and the keeper counted them twice before she went in for her tea.";
    const GERMAN: &str = "Die Bienen kamen am ersten warmen Tag im März zurück, wie seit sechzig \
        Jahren, und die Imkerin zählte sie zweimal, bevor sie zum Tee hineinging.";
    const CZECH: &str = "Včely se vrátily první teplý březnový den, jako už šedesát let, a včelařka \
        je dvakrát spočítala, než šla dovnitř na čaj a na kousek koláče.";

    fn check(declared: Option<&str>, text: &str, want: Option<&str>) {
        assert_eq!(best(declared.map(str::to_owned), text).as_deref(), want, "{text}");
    }

    #[test]
    fn the_text_has_the_last_word() {
        check(Some("en-GB"), ENGLISH, Some("en-GB"));
        check(Some("en-US"), GERMAN, Some("de"));
        check(None, GERMAN, Some("de"));
        check(Some("en"), CZECH, Some("cs"));
        check(Some("cs"), CZECH, Some("cs"));
    }

    #[test]
    fn what_is_unsure_stays_as_declared() {
        check(Some("fr"), "Too short", Some("fr"));
        check(None, "Too short", None);
        check(None, &"12 34 56 ".repeat(50), None);
    }
}
