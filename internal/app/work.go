package app

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// addWork adds the workers. What it returns closes what they opened.
func (p *program) addWork(st *store.Store, _ *pgxpool.Pool) (stop func(), err error) {
	callback, err := processor.NewCallback(p.live.target, processor.CallbackOptions{
		Now: p.edges.Now, DialContext: p.edges.DialContext, MaxIdle: p.cfg.Workers.Count,
	})
	if err != nil {
		return nil, err
	}
	workers, err := processor.NewWorkers(st, callback, processor.WorkerOptions{
		Workers:  p.cfg.Workers.Count,
		PollOnly: p.cfg.Pool.PgBouncer,
		Logger:   p.log, Registerer: p.registry,
	})
	if err != nil {
		return nil, err
	}
	p.front = append(p.front, workers.Run)
	return callback.Close, nil
}
