package app

import (
	"context"
	"errors"
	"maps"

	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/upkeep"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// addWork adds the workers, and with them the job that keeps the tables in
// shape. What it returns closes what they opened.
func (p *program) addWork(st *store.Store) (stop func(), err error) {
	tidy, err := upkeep.New(st, upkeep.Options{
		KeepPayloads: p.cfg.Retention.Payloads, Logger: p.log, Registerer: p.registry,
	})
	if err != nil {
		return nil, err
	}
	keys, err := idempotency.NewStore(st.Pool(), idempotency.StoreOptions{Registerer: p.registry})
	if err != nil {
		return nil, err
	}
	schedule, err := upkeep.NewSchedule(st, upkeep.ScheduleOptions{Now: p.edges.Now, Logger: p.log, Registerer: p.registry})
	if err != nil {
		return nil, err
	}
	attention, err := upkeep.NewAttention(st, upkeep.AttentionOptions{Sources: p.live.sourceKeys, Now: p.edges.Now, Registerer: p.registry})
	if err != nil {
		return nil, err
	}
	minutely, err := upkeep.NewMinutely(p.log,
		upkeep.Task{Name: "orders_expired", Run: func(ctx context.Context) (int64, error) {
			n, err := st.ExpireOrders(ctx)
			return int64(n), err
		}},
		upkeep.Task{Name: "idempotency_keys_swept", Run: func(ctx context.Context) (int64, error) {
			res, err := keys.Sweep(ctx)
			return res.Expired, err
		}},
		attention.Task(),
		schedule.Task(), // last: after a long standstill it has much to do
	)
	if err != nil {
		return nil, err
	}
	callback, err := processor.NewCallback(p.live.target, processor.CallbackOptions{
		Now: p.edges.Now, DialContext: p.edges.DialContext, MaxIdle: p.cfg.Workers.Count,
	})
	if err != nil {
		return nil, err
	}
	fetcher, err := p.newFetcher(st)
	if err != nil {
		return nil, err
	}
	mover, err := p.newMover(st)
	if err != nil {
		return nil, err
	}
	if p.cfg.Reconcile.Every > 0 {
		reconciler, err := p.newReconciler(st)
		if err != nil {
			return nil, err
		}
		p.front = append(p.front, reconciler.Run)
	}
	queues := fetcher.Queues()
	maps.Copy(queues, mover.Queues())
	workers, err := processor.NewWorkers(st, callback, processor.WorkerOptions{
		Workers:  p.cfg.Workers.Count,
		PollOnly: p.cfg.Pool.PgBouncer,

		PeriodicJobs: []*river.PeriodicJob{tidy.Periodic(), minutely.Periodic()},
		Queues:       queues,
		AddWorkers: func(ws *river.Workers) error {
			return errors.Join(tidy.Register(ws), minutely.Register(ws), fetcher.Register(ws), mover.Register(ws))
		},

		Logger: p.log, Registerer: p.registry,
	})
	if err != nil {
		return nil, err
	}
	p.front = append(p.front, workers.Run, fetcher.Run, mover.Run)
	return callback.Close, nil
}
