use braid_stack::ByteSize;

use super::*;

fn sticks() -> Vec<MemberDecl> {
    let stick = |name: &str, bus: &str| MemberDecl {
        name: name.into(),
        device: format!("{name}.img"),
        bus: Some(bus.into()),
    };
    vec![stick("a", "1"), stick("b", "1"), stick("c", "1"), stick("d", "2"), stick("e", "2")]
}

fn stripe(lists: &str) -> SubjectDecl {
    let stripe = "name = 'stripe'\nstack = 'raid0(chunk={chunk}, {members})'";
    let chunk = if lists.contains("chunk") { "" } else { "chunk = '64K'" };
    toml::from_str(&format!("{stripe}\n{chunk}\n{lists}")).unwrap()
}

fn texts(declared: SubjectDecl) -> Vec<String> {
    let subjects = expand_subjects(&[declared], &sticks());
    subjects.iter().map(|subject| subject.source.text().to_owned()).collect()
}

#[test]
fn each_combination_is_a_subject_named_by_what_varies() {
    let declared = stripe("chunk = ['64K', '128K']\nmembers = [1, 2]");
    let subjects = expand_subjects(&[declared], &sticks());
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(names, ["stripe 64K × 1", "stripe 64K × 2", "stripe 128K × 1", "stripe 128K × 2"]);
    assert_eq!(subjects[1].dimensions["members"], Value::Count(2));
    assert_eq!(subjects[1].dimensions["chunk"], Value::Size(ByteSize(65536)));
}

#[test]
fn one_bus_takes_all_from_it_and_two_take_in_turn() {
    let declared = |buses: u32, order: &str| {
        stripe(&format!("members = 3\nbuses = {buses}\norder = '{order}'"))
    };
    assert_eq!(texts(declared(1, "given")), ["raid0(chunk=64K, a.img, b.img, c.img)"]);
    assert_eq!(texts(declared(2, "alternate")), ["raid0(chunk=64K, a.img, d.img, b.img)"]);
    assert_eq!(texts(declared(2, "grouped")), ["raid0(chunk=64K, a.img, b.img, d.img)"]);
    assert_eq!(texts(declared(2, "reversed")), ["raid0(chunk=64K, b.img, d.img, a.img)"]);
    assert_eq!(texts(declared(2, "given")), ["raid0(chunk=64K, a.img, b.img, d.img)"]);
}

#[test]
fn what_cannot_be_is_said_and_kept() {
    let declared = stripe("members = 4\nbuses = 1");
    let subjects = expand_subjects(&[declared], &sticks());
    assert_eq!(subjects[0].impossible.as_deref(), Some("it needs 4 members and there are 3"));
    let declared = stripe("buses = 3");
    let subjects = expand_subjects(&[declared], &sticks());
    assert!(subjects[0].impossible.as_deref().unwrap().contains("3 buses"));
}

#[test]
fn single_members_are_named_in_braces() {
    let declared = SubjectDecl::new("one", Source::Path("{d}".into()), true);
    assert_eq!(texts(declared), ["d.img"]);
}
