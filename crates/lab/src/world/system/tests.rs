use super::*;

const LONG: Duration = Duration::from_secs(600);

fn perform(world: &mut SystemWorld, step: Step) -> Result<(), LabError> {
    world.perform(&step, LONG, &StopFlag::default())
}

#[test]
fn output_status_and_signals_come_back() {
    let mut world = SystemWorld::new();
    let shell = CommandLine::new("sh").arg("-c").arg("echo out; echo err >&2; exit 3");
    let done = world.run(&shell, LONG, &StopFlag::default()).unwrap();
    assert_eq!(
        (done.exit, done.stdout.as_str(), done.stderr.as_str()),
        (Exit::Code(3), "out\n", "err\n")
    );
    let gone = CommandLine::new("/nonexistent/tool");
    let error = world.run(&gone, LONG, &StopFlag::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/tool"));
}

#[test]
fn a_command_runs_in_its_folder_and_in_the_c_locale() {
    let shell = CommandLine::new("sh").arg("-c").arg("pwd; echo $LC_ALL").in_folder("/dev");
    let done = SystemWorld::new().run(&shell, LONG, &StopFlag::default()).unwrap();
    assert_eq!(done.stdout, "/dev\nC\n");
}

#[test]
fn a_set_flag_stops_a_tool_and_its_children() {
    let stop = StopFlag::default();
    stop.set();
    let sleeper = CommandLine::new("sh").arg("-c").arg("sleep 1000 & sleep 1000");
    let done = SystemWorld::new().run(&sleeper, LONG, &stop).unwrap();
    assert_eq!(done.exit, Exit::Stopped);
}

#[test]
fn steps_make_read_and_remove_below_a_folder_of_ours() {
    let outside = tempfile::tempdir().unwrap();
    let mut world = SystemWorld::new();
    let folder = world.make_folder(outside.path()).unwrap();
    let below = folder.join("tree");
    perform(&mut world, Step::MakeFolder(below.clone())).unwrap();
    let file = below.join("a");
    perform(&mut world, Step::MakeFile { path: file.clone(), bytes: 5000, seed: 1 }).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 5000);
    perform(&mut world, Step::ReadAll(folder.clone())).unwrap();
    assert!(perform(&mut world, Step::MakeFolder(below.clone())).is_err());
    perform(&mut world, Step::Remove(below.clone())).unwrap();
    assert!(!below.exists());
    world.remove_folder(&folder, false).unwrap();
    assert!(!folder.exists());
    world.remove_folder(&folder, false).unwrap();
}

#[test]
fn nothing_else_is_removed() {
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    std::fs::write(&precious, b"x").unwrap();
    let mut world = SystemWorld::new();
    let folder = world.make_folder(outside.path()).unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    for path in [
        precious.clone(),
        outside.path().to_path_buf(),
        folder.join("..").join("precious"),
        folder.join(".."),
        link.join("precious"),
    ] {
        assert!(perform(&mut world, Step::Remove(path.clone())).is_err(), "{}", path.display());
    }
    // The link itself belongs to this world; its target does not.
    perform(&mut world, Step::Remove(link)).unwrap();
    assert!(world.remove_folder(outside.path(), true).is_err());
    assert!(precious.exists());
}

#[test]
fn a_step_that_fails_says_what_it_said() {
    let mut world = SystemWorld::new();
    let command = CommandLine::new("sh").arg("-c").arg("echo no room >&2; exit 4");
    let error = perform(&mut world, Step::Run(command)).unwrap_err().to_string();
    assert!(error.contains("exit status 4 no room"), "{error}");
    assert!(error.contains("command: sh -c"), "{error}");
}

#[test]
fn a_path_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = SystemWorld::new();
    world.sync_path(dir.path()).unwrap();
    assert!(world.sync_path(Path::new("/nonexistent")).is_err());
}
