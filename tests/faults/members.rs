//! Members that lose their end, and members on a disk that is full.

use braid_nbd::protocol::{Command, NbdErrno};

use crate::common::{
    Client, Failed, KIB, LoopDevice, MIB, Mounted, Scratch, Tool, UpVolume, Volume, drivers,
    pattern, skip_unless_root, skip_without, start,
};

/// The volume's status of its second member: the number of failures, and the last one.
fn second_member(volume: &UpVolume) -> (u64, String) {
    let status = volume.status();
    let member = &status["members"][1];
    let last = member["last_failure"].as_str().unwrap_or_default();
    (member["failures"].as_u64().expect("a count"), last.to_owned())
}

#[track_caller]
fn assert_answers(result: Result<Vec<u8>, Failed>, errno: NbdErrno) {
    match result {
        Err(Failed::Answered(answer)) => assert_eq!(answer, errno),
        Ok(_) => panic!("should have been answered with {errno}"),
        Err(Failed::Gone(error)) => panic!("the connection should go on: {error}"),
    }
}

#[test]
fn a_file_that_is_cut_off_behind_the_volume_s_back() {
    for driver in drivers() {
        let scratch = Scratch::new();
        scratch.file("a.img", MIB, 1);
        scratch.file("b.img", MIB, 2);
        let options = ["--name", "v", "--attach", "none", "--io", driver];
        let volume = scratch.up("linear(./a.img, ./b.img)", &options);
        let mut client = volume.client();
        assert!(client.read(MIB, 1 << 20).unwrap() == pattern(2, 0, MIB));
        assert_eq!(second_member(&volume), (0, String::new()));
        scratch.resize("b.img", MIB / 2);
        // What is left can be read; what is not, and what reaches over the end, cannot.
        assert!(client.read(MIB, 512 << 10).unwrap() == pattern(2, 0, MIB / 2));
        assert_answers(client.read(2 * MIB - 64 * KIB, 64 << 10), NbdErrno::Io);
        assert_answers(client.read(MIB + MIB / 2 - 4 * KIB, 8 << 10), NbdErrno::Io);
        // A request over both members fails as one.
        assert_answers(client.read(0, 2 << 20), NbdErrno::Io);
        assert!(client.read(0, 1 << 20).unwrap() == pattern(1, 0, MIB), "the other is as it was");
        let (failures, last) = second_member(&volume);
        assert!(failures >= 3 && !last.is_empty(), "{driver}: {failures} failures, last {last:?}");
        let status = volume.status();
        assert_eq!(status["state"], "failing");
        assert!(status["why"].as_str().is_some_and(|why| why.contains("b.img failed")));
        assert!(status["next"].as_str().is_some_and(|next| next.contains("replace the member")));
        assert_eq!(status["members"][0]["failures"], 0);
        assert_eq!(status["nbd"]["errors"], 3);
        volume.down();
    }
}

#[test]
fn a_loop_device_over_a_file_that_is_cut_off() {
    skip_unless_root!();
    skip_without!("losetup");
    for driver in drivers() {
        let scratch = Scratch::new();
        let image = scratch.file("b.img", MIB, 2);
        let Some(device) = LoopDevice::attach(&image) else { return };
        let options = ["--name", "v", "--attach", "none", "--io", driver];
        let stack = format!("raid0(chunk=64K, ram(1M), {})", device.text());
        let volume = scratch.up(&stack, &options);
        let mut client = volume.client();
        // Chunk 1 of the volume is the first of the device, chunk 31 its last.
        let last = 31 * 64 * KIB;
        assert!(client.read(last, 64 << 10).unwrap() == pattern(2, MIB - 64 * KIB, 64 * KIB));
        scratch.resize("b.img", MIB / 2);
        assert_answers(client.read(last, 64 << 10), NbdErrno::Io);
        assert!(client.read(64 * KIB, 64 << 10).unwrap() == pattern(2, 0, 64 * KIB));
        assert!(second_member(&volume).0 > 0);
        client.write(0, &pattern(3, 0, 64 * KIB), true).expect("the other member is as it was");
        volume.down();
    }
}

/// The kernel lets go of it when the volume does.
#[test]
fn a_loop_device_that_is_detached_is_used_to_the_end() {
    skip_unless_root!();
    skip_without!("losetup");
    let scratch = Scratch::new();
    let [a, b] = ["a.img", "b.img"].map(|name| scratch.sparse(name, 16 * MIB));
    let (Some(first), Some(second)) = (LoopDevice::attach(&a), LoopDevice::attach(&b)) else {
        return;
    };
    let stack = format!("raid1({}, {})", first.text(), second.text());
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, 4096), true).unwrap();
    let second_path = second.text().to_owned();
    second.detach();
    client.write(MIB, &pattern(2, 0, 4096), true).expect("it goes on");
    assert!(client.read(0, 4096).unwrap() == pattern(1, 0, 4096));
    let state = volume.status()["state"].clone();
    assert!(["online", "resyncing"].contains(&state.as_str().expect("a word")), "{state}");
    volume.down();
    for image in ["a.img", "b.img"] {
        let bytes = scratch.read(image);
        assert!(bytes[..4096] == pattern(1, 0, 4096), "{image}");
        assert!(bytes[MIB as usize..][..4096] == pattern(2, 0, 4096), "{image}");
    }
    // Now it is gone, and that is said.
    scratch.run(&["up", "v"]).fails(3, &[&second_path]);
}

#[test]
fn a_full_disk_under_a_sparse_member() {
    skip_unless_root!();
    for driver in drivers() {
        let scratch = Scratch::new();
        let Some(disk) = Mounted::tmpfs(&scratch.join("disk"), 4 * MIB) else { return };
        let member = scratch.sparse("disk/b.img", 16 * MIB);
        let stack = format!("linear(ram(1M), {})", member.display());
        let options = ["--name", "v", "--attach", "none", "--io", driver];
        let volume = scratch.up(&stack, &options);
        let mut client = volume.client();
        let bytes = pattern(1, 0, 256 * KIB);
        let mut written = Vec::new();
        let mut refused = 0;
        for index in 0..32 {
            let offset = MIB + index * 256 * KIB;
            match client.write(offset, &bytes, false) {
                Ok(()) => written.push(offset),
                Err(Failed::Answered(errno)) => {
                    assert_eq!(errno, NbdErrno::NoSpc);
                    refused += 1;
                }
                Err(Failed::Gone(error)) => panic!("the connection should go on: {error}"),
            }
        }
        assert!(refused > 0 && written.len() > 4, "{} written, {refused} refused", written.len());
        for &offset in &written {
            assert!(client.read(offset, 256 << 10).unwrap() == bytes, "what was taken is there");
        }
        client.write(0, &bytes, true).expect("the other member has room");
        assert_eq!(second_member(&volume).0, refused);
        // What is discarded makes room.
        let length = 1 << 20;
        let discard = Command::Trim { offset: MIB, length, fua: false };
        client.request(discard, &[]).unwrap();
        let elsewhere = MIB + 10 * MIB;
        client.write(elsewhere, &bytes, true).expect("there is room again");
        assert!(client.read(elsewhere, 256 << 10).unwrap() == bytes);
        volume.down();
        drop(disk);
    }
}

/// The first flush fails, as when the disk has lost what was in its cache; the kernel would answer
/// all later ones well.
#[test]
fn a_flush_that_failed_is_not_forgotten() {
    skip_without!("strace");
    let scratch = Scratch::new();
    scratch.sparse("a.img", 16 * MIB);
    scratch.sparse("b.img", 16 * MIB);
    let socket = scratch.join("s.nbd");
    // As a tracer of its parent, so that it is the volume that is ended at last.
    let inject = ["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e"];
    let mut command = Tool::new("strace")
        .args(inject)
        .args(["inject=fdatasync:error=EIO:when=1", env!("CARGO_BIN_EXE_braid"), "serve"])
        .args(["raid0(chunk=64K, ./a.img, ./b.img)", "--io", "threads", "--nbd"])
        .arg(format!("unix:{}", socket.display()))
        .folder(scratch.path())
        .into_command();
    let child = start(&mut command).expect("strace can be started");
    let volume = Volume::adopt(&scratch, child, &socket);
    let mut client = Client::connect_patiently(&socket);
    client.write(0, &pattern(1, 0, 4096), false).unwrap();
    for flush in 0..4 {
        match client.flush() {
            Err(Failed::Answered(errno)) => assert_eq!(errno, NbdErrno::Io),
            other => panic!("flush {flush} should fail as the first did: {other:?}"),
        }
    }
    assert!(client.read(0, 4096).unwrap() == pattern(1, 0, 4096), "reads and writes go on");
    client.write(4096, &pattern(1, 0, 4096), false).unwrap();
    drop(volume);
}

#[test]
fn a_member_whose_name_is_gone_is_used_to_the_end() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    std::fs::remove_file(scratch.join("a.img")).unwrap();
    let mut client: Client = volume.client();
    client.write(0, &pattern(2, 0, 4096), true).unwrap();
    assert!(client.read(0, 4096).unwrap() == pattern(2, 0, 4096));
    volume.down();
    scratch.run(&["up", "v"]).fails(3, &["v is not started: its member ", "a.img", "is not there"]);
}
