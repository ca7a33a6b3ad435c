package ledger

import "time"

// Report is what a verification went over.
type Report struct {
	Entries     uint64          `json:"entries"`
	Kinds       map[Kind]uint64 `json:"kinds"`
	First, Last time.Time       `json:"-"`
	Head        Position        `json:"head"`
	Blobs       uint64          `json:"blobs"`
	BlobBytes   uint64          `json:"blobBytes"`
}
