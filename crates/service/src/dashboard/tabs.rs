//! Tabs above a list: one for all entries, and one for each value of a filter.

pub(super) struct Tab {
    pub(super) name: &'static str,
    pub(super) path: String,
    pub(super) is_current: bool,
}

impl Tab {
    /// A tab for all entries, and one for each of these values.
    pub(super) fn all<T: Copy + PartialEq>(
        values: impl IntoIterator<Item = T>,
        current: Option<T>,
        name: impl Fn(T) -> &'static str,
        path: impl Fn(Option<T>) -> String,
    ) -> Vec<Tab> {
        let tab = |value: Option<T>| Tab {
            name: value.map_or("all", &name),
            path: path(value),
            is_current: current == value,
        };
        std::iter::once(None).chain(values.into_iter().map(Some)).map(tab).collect()
    }
}
