//! Links to files that are not pages.

use crate::url::WebUrl;

/// Extensions of archives, media, documents, programs and data, in lower case. Extensions of generated pages (`.php`,
/// `.aspx`, `.cgi`) are not among them.
const EXTENSIONS: &[&str] = &[
    // Archives and packages.
    "7z", "apk", "bz2", "cab", "deb", "dmg", "ear", "epub", "exe", "gz", "iso", "jar", "lz", "lzma",
    "mobi", "msi", "msix", "pkg", "rar", "rpm", "tar", "tgz", "war", "whl", "xz", "z", "zip",
    "zst", // Images and fonts.
    "ai", "avif", "bmp", "cur", "eot", "eps", "gif", "heic", "icns", "ico", "jpe", "jpeg", "jpg",
    "otf", "png", "psd", "raw", "svg", "svgz", "tif", "tiff", "ttf", "webp", "woff", "woff2",
    // Sound and video.
    "3gp", "aac", "aif", "aiff", "avi", "flac", "flv", "m3u8", "m4a", "m4v", "mid", "midi", "mkv",
    "mov", "mp3", "mp4", "mpeg", "mpg", "oga", "ogg", "ogv", "opus", "swf", "ts", "wav", "webm",
    "wma", "wmv", // Documents.
    "doc", "docx", "dot", "dotx", "key", "numbers", "odp", "ods", "odt", "pages", "pdf", "pot",
    "potx", "pps", "ppsx", "ppt", "pptx", "ps", "rtf", "xls", "xlsm", "xlsx",
    // Scripts, styles and data.
    "bin", "css", "csv", "dat", "db", "ics", "js", "json", "map", "mjs", "parquet", "sqlite", "sql",
    "tsv", "vcf", "wasm", "xsd", "xsl",
];

/// Whether the URL names a file that is not a page, by the extension of its path.
pub fn is_download(url: &WebUrl) -> bool {
    let path = url.path_and_query();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_pages() {
        for (link, expected) in [
            ("http://a.test/x.pdf", true),
            ("http://a.test/x.tar.GZ?download=1", true),
            ("http://a.test/photo.JPG", true),
            ("http://a.test/", false),
            ("http://a.zip/", false),
            ("http://a.test/x.html", false),
            ("http://a.test/x.php?file=x.pdf", false),
            ("http://a.test/x.pdf/read", false),
            ("http://a.test/version-1.2", false),
            ("http://a.test/.well-known", false),
        ] {
            assert_eq!(is_download(&WebUrl::parse(link).unwrap()), expected, "{link}");
        }
    }
}
