//! The leaves of a subject.

use braid_stack::{Node, Stack};

use crate::campaign::Source;

/// A leaf of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// A file or block device.
    Path(String),
    /// `ram(...)`.
    Memory(String),
    /// `model(...)`.
    Model {
        /// The text in the stack.
        text: String,
        /// The bus that the model shares with other models, such as `usb2:0`.
        bus: Option<String>,
    },
    /// Elsewhere: an NBD export, or a leaf that is unknown to this program.
    Remote(String),
}

impl Member {
    /// Returns the text in the stack.
    pub fn text(&self) -> &str {
        match self {
            Self::Path(text)
            | Self::Memory(text)
            | Self::Remote(text)
            | Self::Model { text, .. } => text,
        }
    }

    /// Returns true if the content is gone when its server stops.
    pub fn is_ephemeral(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Model { .. })
    }
}

/// Returns the members of a subject, in order. A campaign's stacks have been parsed before
/// ([`crate::matrix::Planned::checked`]). A stack that does not parse is a single unknown member, which the
/// safety rule treats as valuable.
pub fn members_of(source: &Source) -> Vec<Member> {
    match source {
        Source::Path(path) | Source::Directory(path) => vec![Member::Path(path.clone())],
        Source::Nbd(uri) => vec![Member::Remote(uri.clone())],
        Source::Zram(size) => vec![Member::Memory(format!("zram of {size}"))],
        Source::Tmpfs(size) => vec![Member::Memory(format!("tmpfs of {size}"))],
        Source::Stack(expression) | Source::Kernel(expression) => match expression.stack() {
            Ok(stack) => stack.leaves().into_iter().map(member_of).collect(),
            Err(_) => vec![Member::Remote(expression.to_string())],
        },
    }
}

/// Returns a leaf's text in plans and reports, as [`Member::text`].
pub(crate) fn leaf_text(leaf: &Stack) -> String {
    member_of(leaf).text().to_owned()
}

fn member_of(leaf: &Stack) -> Member {
    match &leaf.node {
        Node::File(file) => Member::Path(file.path.clone()),
        Node::Ram(_) => Member::Memory(leaf.to_string()),
        Node::Model(model) => Member::Model { text: leaf.to_string(), bus: model.bus.clone() },
        _ => Member::Remote(leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<Member> {
        members_of(&Source::Stack(text.into()))
    }

    #[test]
    fn leaves_are_found_in_order() {
        let path = |text: &str| Member::Path(text.to_owned());
        assert_eq!(members("./a.img"), [path("./a.img")]);
        assert_eq!(
            members("raid0(chunk=64K, /dev/sdb, file(/srv/a.img))"),
            [path("/dev/sdb"), path("/srv/a.img")]
        );
        assert_eq!(members("linear(ram(256M), a.img)")[0], Member::Memory("ram(256M)".into()));
    }

    #[test]
    fn a_quoted_comma_hides_no_member() {
        assert_eq!(
            members(r#"raid0("/srv/a,b.img", /srv/c.img)"#),
            [Member::Path("/srv/a,b.img".into()), Member::Path("/srv/c.img".into())]
        );
    }

    #[test]
    fn a_bus_is_named() {
        let found = members("raid0(model(usb-flash, size=2G, bus=usb2:0), model(hdd, size=1G))");
        let buses: Vec<_> = found
            .iter()
            .map(|member| match member {
                Member::Model { bus, .. } => bus.as_deref(),
                _ => panic!("{member:?} is no model"),
            })
            .collect();
        assert_eq!(buses, [Some("usb2:0"), None]);
    }

    #[test]
    fn what_does_not_parse_is_precious() {
        assert_eq!(members("raid0("), [Member::Remote("raid0(".into())]);
    }
}
