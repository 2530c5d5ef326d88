import { run } from './state.ts'
await run((f)=>console.log(f.case,f.metric,f.value.toFixed(2),f.ratio))
