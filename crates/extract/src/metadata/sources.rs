//! What the fields of the metadata are read from.

use url::Url;

use super::json_ld::JsonLd;
use super::metas::Metas;
use crate::page::Page;

pub(super) struct Sources<'s, 'a> {
    pub(super) page: &'s Page<'a>,
    pub(super) metas: &'s Metas,
    pub(super) json_ld: &'s JsonLd<'a>,
    pub(super) url: &'s Url,
    pub(super) title: &'s str,
    pub(super) lang: Option<&'s str>,
    pub(super) site_name: Option<&'s str>,
}
