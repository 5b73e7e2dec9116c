use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use braid_seed::Rng;
use std::process::Command;

use crate::world::SystemWorld;

/// Makes a source without a stop.
fn make_source(data: SourceData, folder: &Path, seed: u64) -> Result<(), LabError> {
    super::make_source(data, folder, seed, &StopFlag::default(), &mut SystemWorld::new())
}

fn all_files(root: &Path, found: &mut Vec<(PathBuf, u64)>) {
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            all_files(&entry.path(), found);
        } else {
            found.push((entry.path(), meta.len()));
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_of_noise_is_exact_and_the_same_for_a_seed() {
    let bytes = (1 << 20) + 4097;
    let made = |seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        make_source(SourceData::File(bytes), dir.path(), seed).unwrap();
        assert_eq!(names_in(dir.path()).len(), 1, "nothing else is left");
        fs::read(SourceData::File(bytes).path_in(dir.path())).unwrap()
    };
    let noise = made(7);
    assert_eq!(noise.len() as u64, bytes);
    assert!(noise == made(7) && noise != made(8));
    let kinds: BTreeSet<u8> = noise.into_iter().collect();
    assert_eq!(kinds.len(), 256);
}

#[test]
fn what_is_there_is_kept_and_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (file, tree) = (SourceData::File(4), SourceData::Tree(4));
    fs::write(file.path_in(dir.path()), b"mine").unwrap();
    make_source(file, dir.path(), 1).unwrap();
    assert_eq!(fs::read(file.path_in(dir.path())).unwrap(), b"mine");
    for (data, other) in [(file, &b"other"[..]), (tree, b"file")] {
        fs::write(data.path_in(dir.path()), other).unwrap();
        let error = make_source(data, dir.path(), 1).unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
        assert_eq!(fs::read(data.path_in(dir.path())).unwrap(), other);
    }
}

#[test]
fn a_tree_has_the_size_and_shape_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    make_source(SourceData::Tree(4 << 20), dir.path(), 3).unwrap();
    let mut files = Vec::new();
    all_files(&dir.path().join("tree-4M"), &mut files);
    assert_eq!(files.iter().map(|(_, bytes)| bytes).sum::<u64>(), 4 << 20);
    let text = fs::read(&files[0].0).unwrap();
    assert!(text.iter().all(|byte| byte.is_ascii_graphic() || b" \t\n".contains(byte)));
}

#[test]
fn sizes_are_log_normal_and_folders_are_nested() {
    let files = plan_tree(64 << 20, 1);
    let mut sizes: Vec<u64> = files.iter().map(|file| file.bytes).collect();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!((3600..4600).contains(&median), "median {median}");
    let mean = (64 << 20) / sizes.len() as u64;
    assert!((9_500..13_000).contains(&mean), "mean {mean}");
    let depth = files.iter().map(|file| file.folder.components().count()).max();
    assert_eq!(depth, Some(DEEPEST));
    let names: BTreeSet<PathBuf> = files.iter().map(|f| f.folder.join(&f.name)).collect();
    assert_eq!(names.len(), files.len());
}

#[test]
fn an_archive_is_the_same_bytes_each_time_and_unpacks_to_the_tree() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = SourceData::Archive(1 << 20);
    for dir in [&a, &b] {
        make_source(data, dir.path(), 5).unwrap();
        assert_eq!(names_in(dir.path()), ["tree-1M.tar"]);
    }
    let read = |dir: &tempfile::TempDir| fs::read(dir.path().join("tree-1M.tar")).unwrap();
    assert_eq!(read(&a), read(&b));
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(a.path().join("tree-1M.tar")).current_dir(b.path());
    assert!(tar.status().unwrap().success());
    let mut files = Vec::new();
    all_files(&b.path().join("tree"), &mut files);
    assert_eq!(files.iter().map(|(_, bytes)| bytes).sum::<u64>(), 1 << 20);
    assert_eq!(files.len(), plan_tree(1 << 20, 5).len());
}

#[test]
fn a_failure_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let error = make_source(SourceData::Tree(1 << 20), &dir.path().join("gone"), 1).unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    assert!(names_in(dir.path()).is_empty());
}

proptest! {
    #[test]
    fn a_plan_adds_up(bytes in 0_u64..300_000, seed in any::<u64>()) {
        let files = plan_tree(bytes, seed);
        prop_assert_eq!(files.iter().map(|file| file.bytes).sum::<u64>(), bytes);
        prop_assert!(files.iter().all(|file| file.bytes > 0));
        prop_assert_eq!(plan_tree(bytes, seed), files);
    }

    #[test]
    fn text_is_as_long_as_asked(bytes in 0_u64..5000, seed in any::<u64>()) {
        prop_assert_eq!(text(bytes, &mut Rng::new(seed)).len() as u64, bytes);
    }
}

/// Otherwise Ctrl-C would take effect only after gigabytes are written.
#[test]
fn a_stop_ends_the_making_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let stop = StopFlag::default();
    stop.set();
    for data in [SourceData::File, SourceData::Tree, SourceData::Archive].map(|of| of(8 << 20)) {
        let made = super::make_source(data, dir.path(), 1, &stop, &mut SystemWorld::new());
        assert!(matches!(made, Err(LabError::Stopped)), "{data:?}: {made:?}");
        assert_eq!(names_in(dir.path()), [] as [String; 0]);
    }
}
