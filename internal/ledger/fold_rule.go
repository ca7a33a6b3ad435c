package ledger

func foldCheckpoint(s *State, e Entry, b Checkpoint) string {
	return ""
}

func foldLowered(s *State, e Entry, b Lowered) string { return "" }

func foldAdopted(s *State, e Entry, b Adopted) string { return "" }

func foldCeiling(s *State, e Entry, b Ceiling) string { return "" }
