//! The metadata of a setting: everything but its type.

/// One row of a table of settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// The path in the file, such as `http.connect_timeout`.
    pub(super) path: &'static str,
    /// The default, as a user would write it.
    pub(super) default: &'static str,
    /// The documentation, line by line.
    pub(super) docs: &'static [&'static str],
    /// Whether it may hold a secret. Then it can be read from a file, and errors do not quote it.
    pub(super) secret: bool,
    /// The variable that a design defines for it.
    pub(super) own_name: Option<OwnName>,
}

pub(super) const fn key(path: &'static str, default: &'static str) -> Key {
    Key { path, default, docs: &[], secret: false, own_name: None }
}

impl Key {
    pub(super) const fn docs(mut self, docs: &'static [&'static str]) -> Key {
        self.docs = docs;
        self
    }

    pub(super) const fn secret(mut self) -> Key {
        self.secret = true;
        self
    }

    pub(super) const fn also(mut self, own_name: OwnName) -> Key {
        self.own_name = Some(own_name);
        self
    }
}

/// A command whose design defines its own environment variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvAliasGroup {
    /// `fetchwell pages`, the Page Fetcher: `PAGE_FETCHER_…`.
    Pages,
    /// `fetchwell commoncrawl`, the Common Crawl Pipeline.
    CommonCrawl,
}

impl EnvAliasGroup {
    pub const ALL: &'static [EnvAliasGroup] = &[EnvAliasGroup::Pages, EnvAliasGroup::CommonCrawl];
}

/// An environment variable that a design defines for a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnName {
    pub(super) door: EnvAliasGroup,
    pub(super) name: &'static str,
    /// The unit of a bare number.
    pub(super) unit: &'static str,
}

pub(super) const fn pages(name: &'static str) -> OwnName {
    OwnName { door: EnvAliasGroup::Pages, name, unit: "" }
}

pub(super) const fn pages_seconds(name: &'static str) -> OwnName {
    OwnName { door: EnvAliasGroup::Pages, name, unit: "s" }
}

pub(super) const fn commoncrawl(name: &'static str) -> OwnName {
    OwnName { door: EnvAliasGroup::CommonCrawl, name, unit: "" }
}

/// What a path in a source refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// The value of a setting.
    Value(&'static Key),
    /// A file with the value of a setting (such as `store_file`, for secrets).
    ValueFile(&'static Key),
}

/// Looks up `path` in the table `keys`.
pub(super) fn meaning(keys: &'static [Key], path: &str) -> Option<Meaning> {
    let find = |path: &str| keys.iter().find(|key| key.path == path);
    find(path).map(Meaning::Value).or_else(|| {
        let key = find(path.strip_suffix("_file")?)?;
        key.secret.then_some(Meaning::ValueFile(key))
    })
}

/// Whether `path` is a table of the file, such as `http`.
pub(super) fn is_group(keys: &[Key], path: &str) -> bool {
    keys.iter().any(|key| group_of(key) == Some(path))
}

/// The table of the file that contains the setting.
pub(super) fn group_of(key: &Key) -> Option<&'static str> {
    key.path.split_once('.').map(|(group, _)| group)
}
