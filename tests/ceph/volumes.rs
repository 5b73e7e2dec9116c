//! Working volumes: an image as a volume, a snapshot, a member, an origin.

use crate::cluster::{Cluster, skip_without_ceph};
use crate::common::{MIB, Scratch, Tool, drivers, pattern, skip_without, wait_until};

/// Runs fio's verified writes on the image's second half.
fn verified(scratch: &Scratch, uri: &str) -> Tool {
    let fio =
        Tool::new("fio").args(["--name=v", "--ioengine=nbd", "--rw=randwrite", "--bsrange=4k-64k"]);
    let fio =
        fio.args(["--offset=64M", "--size=64M", "--io_size=32M", "--iodepth=16", "--fsync=64"]);
    let fio = fio.args(["--verify=crc32c", "--verify_fatal=1"]).arg(format!("--uri={uri}"));
    fio.folder(scratch.path())
}

#[test]
fn an_image_is_a_volume_and_has_what_was_written() {
    skip_without_ceph!();
    skip_without!("fio");
    let cluster = Cluster::start();
    for driver in drivers() {
        let scratch = Scratch::new();
        cluster.rbd(&["create", "rbd/disk", "--size", "128M"]).ok();
        let volume = scratch.serve(&cluster.stack("rbd/disk", ""), &["--io", driver]);
        let mut client = volume.client();
        assert_eq!(client.size(), 128 * MIB);
        let at = 5 * MIB + 512;
        let bytes = pattern(7, at, 3 * MIB);
        client.write(at, &bytes, true).unwrap();
        assert!(client.read(at, 3 * MIB as u32).unwrap() == bytes, "other bytes were read");
        assert!(client.read(60 * MIB, 4096).unwrap().iter().all(|byte| *byte == 0));
        client.flush().unwrap();
        verified(&scratch, volume.uri()).run().ok();
        drop(client);
        volume.stop();
        let out = scratch.join("exported");
        cluster.rbd(&["export", "--no-progress", "rbd/disk", out.to_str().unwrap()]).ok();
        let exported = std::fs::read(&out).unwrap();
        let at = at as usize;
        assert!(exported[at..at + bytes.len()] == bytes, "Ceph's own export has other bytes");
        cluster.rbd(&["rm", "--no-progress", "rbd/disk"]).ok();
    }
}

#[test]
fn a_snapshot_is_read_and_not_written() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    let out = scratch.file("content", 8 * MIB, 3);
    cluster.rbd(&["import", "--no-progress", out.to_str().unwrap(), "rbd/disk"]).ok();
    cluster.rbd(&["snap", "create", "--no-progress", "rbd/disk@monday"]).ok();
    let stack = cluster.stack("rbd/disk@monday", "");
    let refused = scratch.run(&["up", &stack, "--attach", "none"]);
    refused.fails(3, &["rbd(rbd/disk@monday) is read-only", "it is a snapshot", "--read-only"]);
    // While the image itself is written, the snapshot stays as it was.
    let image = scratch.serve(&cluster.stack("rbd/disk", ""), &[]);
    image.client().write(0, &[9; 4096], true).unwrap();
    let volume = Scratch::new();
    let snapshot = volume.serve(&stack, &["--read-only"]);
    let mut client = snapshot.client();
    assert!(client.is_read_only());
    assert!(client.read(0, 4096).unwrap() == std::fs::read(&out).unwrap()[..4096]);
    drop(client);
    snapshot.stop();
    image.stop();
}

#[test]
fn a_mirror_moves_onto_an_image_while_it_is_used_and_ram_stands_in_front_of_it() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    cluster.rbd(&["create", "rbd/new", "--size", "80M"]).ok();
    let (a, b) = (scratch.sparse("a.img", 64 * MIB), scratch.sparse("b.img", 64 * MIB));
    let name = "moves";
    let members = [a.to_str().unwrap(), b.to_str().unwrap()];
    scratch.run(&["create", name, "--level", "raid1", members[0], members[1]]).ok();
    let volume = scratch.up(name, &["--attach", "none"]);
    let bytes = pattern(11, MIB, 2 * MIB);
    volume.client().write(MIB, &bytes, true).unwrap();
    let image = cluster.stack("rbd/new", "");
    scratch.run(&["member", "replace", name, members[1], &image]).ok();
    wait_until("the image has taken the member's place", || {
        let array = volume.status()["arrays"][0].clone();
        let (members, in_sync) = (array["members"].to_string(), array["in_sync"].to_string());
        array["job"].is_null() && !in_sync.contains("false") && members.contains("rbd/new")
    });
    volume.down();
    // The image alone is the array: a degraded mirror with all that was written.
    let alone = Scratch::new();
    let stack = format!("cache(size=16M, mode=write-through, md({image}))");
    // To be written, at once: the lock was given back.
    let served = alone.serve(&stack, &["--degraded"]);
    let mut client = served.client();
    assert!(client.read(MIB, 2 * MIB as u32).unwrap() == bytes, "the copy has other bytes");
    drop(client);
    served.stop();
}

#[test]
fn an_image_is_created_wiped_and_put_back_like_a_disk() {
    skip_without_ceph!();
    skip_without!("mkfs.ext4");
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    let content = scratch.sparse("content", 80 * MIB);
    Tool::new("mkfs.ext4").args(["-q", "-F"]).arg(&content).run().ok();
    cluster.rbd(&["import", "--no-progress", content.to_str().unwrap(), "rbd/far"]).ok();
    cluster.rbd(&["snap", "create", "--no-progress", "rbd/far@before"]).ok();
    let far = cluster.stack("rbd/far", "");
    scratch.sparse("a.img", 80 * MIB);
    let create = |far: &str, more: &[&str]| {
        let create = ["create", "home", "--level", "1", "--bitmap", "internal", "a.img", far];
        scratch.run(&[&create, more].concat())
    };
    let exported = |name: &str| {
        let out = scratch.join(name);
        cluster.rbd(&["export", "--no-progress", "rbd/far", out.to_str().unwrap()]).ok();
        std::fs::read(out).unwrap()
    };
    let before = exported("before");

    create(&far, &[]).fails(3, &["is refused: it contains", "ext4", "--force"]);
    let snapshot = cluster.stack("rbd/far@before", "");
    create(&snapshot, &["--force", &snapshot]).fails(3, &["is read-only", "it is a snapshot"]);
    // One image by two names, which its lock tells apart.
    let same = cluster.stack("rbd/far", ", id=admin");
    let twice = ["create", "home", "--level", "1", &far, &same, "--force", &far, "--force", &same];
    let refused = scratch.run(&twice);
    assert!(!refused.status.success(), "{refused}");
    let other = Scratch::new();
    let used = other.serve(&far, &["--force", &far]);
    create(&far, &["--force", &far]).fails(3, &["exclusive lock is held by 127.0.0.1"]);
    used.stop();
    assert!(exported("refused") == before, "a refusal changes nothing");

    create(&far, &["--force", &far]).ok();
    // At once: the lock was given back.
    let volume = scratch.up("home", &["--attach", "none"]);
    let bytes = pattern(5, MIB, MIB);
    volume.client().write(MIB, &bytes, true).unwrap();
    scratch.run(&["wipe", &far]).fails(3, &["exclusive lock is held by"]);
    volume.down();
    assert!(scratch.run(&["examine", &far]).ok().out.contains("Raid Level : raid1"));
    assert!(scratch.run(&["superblocks", "save", "home"]).ok().out.contains("2 here"));
    let wiped = scratch.run(&["wipe", &far]).ok().out;
    assert!(wiped.contains("was removed"), "{wiped}");
    scratch.run(&["examine", &far]).fails(1, &["has no md superblock"]);
    scratch.run(&["undo", "2"]).ok();
    let volume = scratch.up("home", &["--attach", "none"]);
    assert!(volume.client().read(MIB, MIB as u32).unwrap() == bytes);
    volume.down();
}

#[test]
fn a_client_has_the_rights_of_its_key() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    cluster.rbd(&["create", "rbd/disk", "--size", "64M"]).ok();
    cluster.ceph(&["osd", "pool", "create", "other", "8", "8", "replicated"]).ok();
    cluster.rbd(&["create", "other/disk", "--size", "64M"]).ok();
    let served = scratch.serve(&cluster.stack("rbd/disk", ", id=disk"), &[]);
    let mut client = served.client();
    client.write(0, &pattern(3, 0, 4096), true).unwrap();
    assert_eq!(client.read(0, 4096).unwrap(), pattern(3, 0, 4096));
    drop(client);
    served.stop();
    for (image, id, why) in [
        ("rbd/disk", "nobody", "the client nobody cannot connect to the cluster"),
        ("other/disk", "disk", "Operation not permitted"),
    ] {
        let stack = cluster.stack(image, &format!(", id={id}"));
        let refused = scratch.run(&["up", &stack, "--name", "v", "--attach", "none"]);
        assert!(refused.code() != 0 && refused.err.contains(why), "{refused}");
    }
}
