package sqlite

import "fmt"

// networks are the file systems that other hosts may have mounted too, by the
// magic number that Linux gives them (statfs(2), f_type). There neither the
// writer's lock nor the memory that WAL shares can be trusted, so two writers
// could each claim one key. FUSE and 9p are not among them: they are also what
// local disks look like from within some containers.
var networks = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x564c:     "NCP",
	0x5346414f: "AFS",
	0x00c36400: "Ceph",
	0x73757245: "Coda",
}

// network refuses a path on a file system of that magic number.
func network(path string, magic uint32) error {
	name, found := networks[magic]
	if !found {
		return nil
	}
	return fmt.Errorf("ledger %s is on a network file system (%s), where its lock holds back no other host; put it on a local disk, or use ledger.postgres", path, name)
}
