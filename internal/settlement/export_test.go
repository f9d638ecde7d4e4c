package settlement

// ReadAmount reads an amount as a report in that notation writes it.
func ReadAmount(text, currency string, comma, minor bool) (int64, error) {
	return notation{comma, minor}.read(text, currency)
}

// Sort sorts numbers as lines are sorted, with so many held in memory, twice.
func Sort(dir string, size int, numbers []int) (first, second []int, files int, err error) {
	s := sorter[int]{compare: func(a, b *int) int { return *a - *b }, size: size, dir: dir}
	defer s.close()
	for _, n := range numbers {
		if err := s.add(n); err != nil {
			return nil, nil, 0, err
		}
	}
	for _, to := range []*[]int{&first, &second} {
		err := s.each(func(n *int) error { *to = append(*to, *n); return nil })
		if err != nil {
			return nil, nil, 0, err
		}
	}
	return first, second, len(s.runs), nil
}
